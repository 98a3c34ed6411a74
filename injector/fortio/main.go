// Program fortio is Fortio with one more option: -slices-file writes the requests and latencies over the time of a run.
//
// Fortio's own result has totals only. Its access log has each request, but takes a quarter more CPU time per request.
package main

import (
	"flag"
	"fmt"
	"os"

	"fortio.org/fortio/cli"
	"fortio.org/fortio/fhttp"
	"fortio.org/fortio/periodic"
	"fortio.org/fortio/version"
	"fortio.org/log"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		// Otherwise Fortio prints the version of this module, which has none.
		fmt.Println(version.Short())
		return
	}
	path := flag.String("slices-file", "", "`path` of the file to which the slices of a load are written, as JSON")
	var slices *recorder
	cli.FortioMain(func(http *fhttp.HTTPOptions, options *periodic.RunnerOptions) {
		if *path != "" {
			slices = newRecorder(options, http.HTTPReqTimeOut)
			options.AccessLogger = slices
			log.SetLogLevelQuiet(log.Info)
			log.SetOutput(slices)
		}
	})
	if slices == nil {
		return
	}
	// Without slices the result is still valid.
	if err := slices.write(*path); err != nil {
		fmt.Fprintln(os.Stderr, "cannot write the slices:", err)
	}
}
