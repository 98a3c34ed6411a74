// Program k6 is Grafana k6 with one output more: `--out cycles=…` counts the runs of a script, the cycles,
// within a window, and prints what came of them as one line of JSON.
//
// k6's own summary would not do. It keeps every value in memory, it knows neither when the load began nor
// which cycles failed, and it has one set of figures for all of the load, the warm-up included.
package main

import (
	"go.k6.io/k6/cmd"
	"go.k6.io/k6/output"
)

func main() {
	output.RegisterExtension("cycles", newOutput)
	cmd.Execute()
}
