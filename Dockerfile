# The server of `askwise serve`. Mount a saved selector at /selector and a file of tokens at /run/secrets/askwise_tokens.
FROM python:3.11-slim

WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve]" \
    && rm -rf /build/* \
    && useradd --system --uid 10001 --no-create-home askwise \
    && install --directory --owner askwise /data

USER askwise
WORKDIR /data
VOLUME /data
# One thread per computation: requests are what runs side by side.
ENV OMP_NUM_THREADS=1 ASKWISE_DB=sqlite:////data/cases.sqlite3
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=2)"]
ENTRYPOINT ["askwise", "serve"]
CMD ["/selector", "--host", "0.0.0.0", "--port", "8000", "--token-file", "/run/secrets/askwise_tokens"]
