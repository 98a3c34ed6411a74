# PostgreSQL as CloudNativePG wants it: the server's programs in PATH and a postgres user 26. The
# instance manager comes from the CloudNativePG operator at run time. Debian's group 26 (tape) makes room.
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
