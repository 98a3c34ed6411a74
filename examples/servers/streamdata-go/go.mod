module frugality.dev/examples/servers/streamdata-go

go 1.26
