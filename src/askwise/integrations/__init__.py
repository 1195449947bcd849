"""askwise inside the tools in which models are kept and run; each module needs the extra of its name."""
