FROM scratch
COPY local-path-provisioner /usr/bin/local-path-provisioner
ENV PATH=/usr/bin
ENTRYPOINT ["/usr/bin/local-path-provisioner"]
