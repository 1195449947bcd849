"""The command line and the HTTP interface as the program itself describes them: ``{commands}`` and ``{http}``."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def cell(text: Any) -> str:
    return re.sub(r"\s+", " ", str(text or "")).replace("|", "\\|").strip()


class Commands(SphinxDirective):
    """Each command with its help, arguments and options."""

    def run(self) -> list[nodes.Node]:
        from typer.main import get_command

        from askwise.cli.app import app

        group: Any = get_command(app)
        lines: list[str] = []
        for name, command in group.commands.items():
            if command.hidden:
                continue
            context = group.context_class(command, info_name=f"askwise {name}", parent=None)
            arguments = [p for p in command.get_params(context) if p.param_type_name == "argument"]
            usage = " ".join([*(named(p, context) for p in arguments), "[OPTIONS]"])
            lines += [f"## askwise {name}", "", cell_paragraphs(command.help), "", "```text"]
            lines += [f"askwise {name} {usage}", "```", "", "| | |", "| --- | --- |"]
            lines += [row for parameter in command.get_params(context) if (row := row_of(parameter, context))]
            lines += [""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def cell_paragraphs(text: str | None) -> str:
    return "\n\n".join(cell(part) for part in (text or "").split("\n\n"))


def row_of(parameter: Any, context: Any) -> str:
    """A line of the table: an argument by the name that usage shows, an option as its help has it."""
    if getattr(parameter, "hidden", False):
        return ""
    if parameter.param_type_name == "argument":
        return f"| `{named(parameter, context)}` | {cell(parameter.help)} |"
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    said = cell(record[1]).replace("[default:", "(default:").replace("]", ")").replace("[", "(")
    return f"| `{cell(record[0])}` | {said} |"


def named(argument: Any, context: Any) -> str:
    return " ".join(argument.get_usage_pieces(context)).strip("{}[]")


class Http(SphinxDirective):
    """Each request with what it takes and answers, from the OpenAPI description."""

    def run(self) -> list[nodes.Node]:
        described = description()
        lines: list[str] = []
        for path, methods in described["paths"].items():
            for method, about in methods.items():
                lines += [f"## {method.upper()} {path}", "", cell_paragraphs(about.get("description")), ""]
                lines += self._given(about, described) + self._answers(about)
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)

    def _given(self, about: dict[str, Any], described: dict[str, Any]) -> list[str]:
        rows = [
            (p["name"], p["in"], kind(p.get("schema", {})), p.get("description")) for p in about.get("parameters", [])
        ]
        body = about.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        if "$ref" in body:
            body = described["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
        for name, schema in body.get("properties", {}).items():
            rows.append((name, "body", kind(schema), schema.get("description")))
        if not rows:
            return []
        table = [f"| `{name}` | {where} | {cell(of)} | {cell(said)} |" for name, where, of, said in rows]
        return ["| name | in | type | |", "| --- | --- | --- | --- |", *table, ""]

    def _answers(self, about: dict[str, Any]) -> list[str]:
        answers = [f"{code}: {cell(found.get('description'))}" for code, found in about.get("responses", {}).items()]
        return ["Answers: " + "; ".join(answers) + ".", ""] if answers else []


def kind(schema: dict[str, Any]) -> str:
    """The type of a value in a few words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    return str(schema.get("type") or schema.get("$ref", "any").rsplit("/", 1)[-1])


def description() -> dict[str, Any]:
    from fastapi import FastAPI

    from askwise.web import api

    described = FastAPI(title="askwise")
    described.include_router(api.ROUTER)
    return described.openapi()


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    app.add_directive("http", Http)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
