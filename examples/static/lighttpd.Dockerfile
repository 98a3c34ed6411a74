# lighttpd from Debian's package, with the page that nginx serves too. Context: this directory.
FROM docker.io/library/debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends lighttpd \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY lighttpd.conf /etc/lighttpd/lighttpd.conf
COPY index.html /srv/index.html
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/sbin/lighttpd", "-D", "-f", "/etc/lighttpd/lighttpd.conf"]
