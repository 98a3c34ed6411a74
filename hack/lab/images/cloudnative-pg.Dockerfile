FROM scratch
WORKDIR /
COPY rootfs/ /
USER 65532:65532
ENTRYPOINT ["/manager"]
