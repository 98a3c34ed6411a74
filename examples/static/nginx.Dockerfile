# nginx from Debian's package, with one page. Context: this directory.
FROM docker.io/library/debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends nginx-light \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY nginx.conf /etc/nginx/nginx.conf
COPY index.html /srv/index.html
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/sbin/nginx"]
