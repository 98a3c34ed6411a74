FROM scratch
ADD base-rootfs.tar /
CMD ["bash"]
