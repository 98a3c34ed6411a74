# PostgreSQL as CloudNativePG requires it: the server's programs in PATH and a user postgres with ID 26. The
# CloudNativePG operator adds the instance manager at run time. Debian's group tape is deleted, because it has ID 26.
FROM docker.io/library/debian:bookworm-slim
RUN groupdel tape \
 && groupadd --gid 26 postgres \
 && useradd --uid 26 --gid 26 --home-dir /var/lib/postgresql --shell /bin/bash postgres \
 && apt-get update \
 && apt-get install -y --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/* /var/lib/postgresql/15 /var/log/*
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8
USER 26
