FROM scratch
COPY fortio /usr/bin/fortio
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/bin/fortio"]
CMD ["server", "-http-port", "8080"]
