// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.k6.io/k6/errext"
	"go.k6.io/k6/errext/exitcodes"
	"go.k6.io/k6/metrics"
	"go.k6.io/k6/output"
)

// k6Output is a load that has begun. It records the printed text and the error with which the output ended the load.
type k6Output struct {
	*cyclesOutput
	registry *metrics.Registry
	printed  bytes.Buffer
	stopped  error
}

func begun(t *testing.T) *k6Output {
	t.Helper()
	k6 := &k6Output{registry: metrics.NewRegistry()}
	made, err := newOutput(output.Params{ConfigArgument: "warmUp=1&measured=2&timeout=0.5", StdOut: &k6.printed})
	if err != nil {
		t.Fatal(err)
	}
	k6.cyclesOutput = made.(*cyclesOutput)
	k6.SetBuiltinMetrics(metrics.RegisterBuiltinMetrics(k6.registry))
	k6.SetTestRunStopCallback(func(err error) { k6.stopped = err })
	k6.AddMetricSamples([]metrics.SampleContainer{k6.sample(k6.metric(t, begunMetric, metrics.Counter), 0, 1)})
	return k6
}

// metric creates a metric like a script.
func (k6 *k6Output) metric(t *testing.T, name string, kind metrics.MetricType, of ...metrics.ValueType) *metrics.Metric {
	t.Helper()
	metric, err := k6.registry.NewMetric(name, kind, of...)
	if err != nil {
		t.Fatal(err)
	}
	return metric
}

// sample returns a sample of an agent.
func (k6 *k6Output) sample(metric *metrics.Metric, milliseconds int, value float64) metrics.Sample {
	tags := k6.registry.RootTagSet().With("scenario", scenario)
	return metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags},
		Time:       at(milliseconds),
		Metadata:   map[string]string{"vu": "1"},
		Value:      value,
	}
}

// cycle returns the samples that k6 sends at the end of a cycle.
func (k6 *k6Output) cycle(milliseconds int) metrics.Samples {
	return metrics.Samples{
		k6.sample(k6.builtin.IterationDuration, milliseconds, 10),
		k6.sample(k6.builtin.Iterations, milliseconds, 1),
	}
}

func TestAScriptCannotAddToTheMetricsOfK6(t *testing.T) {
	type made struct {
		name string
		kind metrics.MetricType
		of   metrics.ValueType
	}
	for _, forged := range []made{
		{"iteration_duration", metrics.Trend, metrics.Time},
		{"iterations", metrics.Counter, metrics.Default},
		{"dropped_iterations", metrics.Counter, metrics.Default},
	} {
		k6 := begun(t)
		own := k6.metric(t, forged.name, forged.kind, forged.of)
		k6.AddMetricSamples([]metrics.SampleContainer{
			k6.cycle(1500), k6.sample(own, 1600, 10), k6.sample(own, 1700, 10),
		})
		var code errext.HasExitCode
		if !errors.As(k6.stopped, &code) || code.ExitCode() != exitcodes.ScriptException {
			t.Fatalf("%s: %v", forged.name, k6.stopped)
		}
		if !strings.Contains(k6.stopped.Error(), "adds to the metric "+forged.name+", which is k6's own") {
			t.Error(k6.stopped)
		}
		equal(t, forged.name+": cycles", k6.counts.result().Cycles.Count, 1)
		if err := k6.Stop(); err != nil || k6.printed.Len() > 0 {
			t.Errorf("%s: error %v, printed %s", forged.name, err, k6.printed.String())
		}
	}
}

func TestAScriptMayHaveItsOwnMetrics(t *testing.T) {
	k6 := begun(t)
	own := k6.metric(t, "my_duration", metrics.Trend, metrics.Time)
	dropped := k6.sample(k6.builtin.DroppedIterations, 1600, 3)
	dropped.Metadata = nil
	k6.AddMetricSamples([]metrics.SampleContainer{
		k6.sample(own, 1500, 10), k6.cycle(1500), dropped, k6.sample(k6.builtin.GroupDuration, 1500, 1),
	})
	if k6.stopped != nil {
		t.Fatal(k6.stopped)
	}
	told := k6.counts.result()
	equal(t, "cycles", told.Cycles.Count, 1)
	equal(t, "dropped", told.DroppedCycles, 3)
	if err := k6.Stop(); err != nil || k6.printed.Len() == 0 {
		t.Errorf("error %v, printed %q", err, k6.printed.String())
	}
}

func TestACycleWithChangedTagsCounts(t *testing.T) {
	k6 := begun(t)
	hidden := k6.cycle(1500)
	hidden[0].Tags = k6.registry.RootTagSet()
	failed := k6.sample(k6.builtin.Checks, 1400, 0)
	failed.Tags = k6.registry.RootTagSet().With("scenario", "other").With("check", "answers")
	k6.AddMetricSamples([]metrics.SampleContainer{failed, hidden})
	equal(t, "failed", k6.counts.result().FailedCycles.Count, 1)
}

func TestNoModuleComesFromTheNetwork(t *testing.T) {
	client := http.Client{Transport: refusing{}, Timeout: time.Second}
	if answer, err := client.Get("https://127.0.0.1:1/a.js"); err == nil || !strings.Contains(err.Error(), "can't import from the network") {
		t.Errorf("%v %v", answer, err)
	}
}
