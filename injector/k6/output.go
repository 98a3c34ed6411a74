// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"go.k6.io/k6/errext"
	"go.k6.io/k6/errext/exitcodes"
	"go.k6.io/k6/lib/netext/httpext"
	"go.k6.io/k6/metrics"
	"go.k6.io/k6/output"
)

const (
	// The injector's name for the scenario whose cycles count. setup() belongs to no scenario.
	scenario = "cycles"
	// cycle.js adds 1 to this counter if the script throws. The tag failureTag holds the error's text.
	failureMetric = "frugality_failed_cycles"
	// cycle.js adds 1 to this counter when a cycle begins.
	begunMetric = "frugality_begun_cycles"
	failureTag  = "failure"
)

type cyclesOutput struct {
	counts  *counts
	out     io.Writer
	builtin *metrics.BuiltinMetrics
	// CPU time of this process at the window's start and end.
	cpuBefore, cpuAfter time.Duration
	part                part
	// Ends the load with an error.
	stop func(error)
	// Whether the script is refused. There is then no result.
	isRefused atomic.Bool
}

var (
	_ output.WithBuiltinMetrics = (*cyclesOutput)(nil)
	_ output.WithTestRunStop    = (*cyclesOutput)(nil)
)

// newOutput reads the argument `warmUp=SECONDS&measured=SECONDS&timeout=SECONDS`.
func newOutput(params output.Params) (output.Output, error) {
	values, err := url.ParseQuery(params.ConfigArgument)
	if err != nil {
		return nil, fmt.Errorf("--out cycles=…: %w", err)
	}
	var window window
	for name, target := range map[string]*time.Duration{
		"warmUp":   &window.warmUp,
		"measured": &window.measured,
		"timeout":  &window.timeout,
	} {
		seconds, err := strconv.ParseFloat(values.Get(name), 64)
		if err != nil || !(seconds >= 0 && seconds < 86_400) {
			return nil, fmt.Errorf("--out cycles=… needs %s=SECONDS, from 0 to a day, not %q", name, values.Get(name))
		}
		*target = time.Duration(seconds * float64(time.Second))
	}
	made := &cyclesOutput{counts: newCounts(window), out: params.StdOut}
	if logger, is := params.Logger.(*logrus.Logger); is {
		logger.AddHook(uncaught{made})
	}
	return made, nil
}

// uncaught receives the errors with which k6 logs the end of a cycle (getIterationRunner in lib/executor/helpers.go).
// cycle.js catches all errors of the script, except in a timer and in a promise that the script does not await. Such an
// error ends the cycle early, and k6 counts it as a whole cycle.
type uncaught struct{ output *cyclesOutput }

func (uncaught) Levels() []logrus.Level { return []logrus.Level{logrus.ErrorLevel} }

func (u uncaught) Fire(entry *logrus.Entry) error {
	_, isOfCycle := entry.Data["executor"]
	if isOfCycle && entry.Data["error"] == nil {
		first, _, _ := strings.Cut(entry.Message, "\n")
		u.output.refuse(fmt.Errorf("the script does not await or return a promise that failed, or a timer failed, "+
			"so the cycle ended too early: %s", shortened(first, mostOfFailure)))
	}
	return nil
}

func (o *cyclesOutput) Description() string { return "cycles" }

func (o *cyclesOutput) SetBuiltinMetrics(builtin *metrics.BuiltinMetrics) { o.builtin = builtin }

func (o *cyclesOutput) SetTestRunStopCallback(stop func(error)) { o.stop = stop }

func (o *cyclesOutput) Start() error { return nil }

// AddMetricSamples adds samples. One goroutine of k6 calls it twenty times per second.
func (o *cyclesOutput) AddMetricSamples(containers []metrics.SampleContainer) {
	for _, container := range containers {
		if trail, is := container.(*httpext.Trail); is {
			o.addRequest(trail)
			continue
		}
		if sample, is := container.(metrics.Sample); is && o.isForged(sample) {
			o.refuse(fmt.Errorf("the script adds to the metric %s, which is k6's own: give the metric another name",
				sample.Metric.Name))
			continue
		}
		for _, sample := range container.GetSamples() {
			o.addSample(sample)
		}
	}
	o.noteCPU()
}

func (o *cyclesOutput) addRequest(trail *httpext.Trail) {
	if !o.isOfLoad(trail.Tags) {
		return
	}
	code, _ := trail.Tags.Get(metrics.TagStatus.String())
	took := trail.Connecting + trail.TLSHandshaking + trail.Duration
	o.counts.request(trail.EndTime, trail.Metadata["vu"], took, code, trail.Failed.Bool)
}

func (o *cyclesOutput) addSample(sample metrics.Sample) {
	if sample.Metric != o.builtin.IterationDuration && !o.isOfLoad(sample.Tags) {
		return
	}
	agent := sample.Metadata["vu"]
	switch {
	case sample.Metric == o.builtin.Checks:
		name, _ := sample.Tags.Get(metrics.TagCheck.String())
		o.counts.check(sample.Time, agent, name, sample.Value != 0)
	case sample.Metric == o.builtin.IterationDuration:
		took := time.Duration(sample.Value * float64(time.Millisecond))
		o.counts.cycle(sample.Time, agent, took)
	case sample.Metric == o.builtin.DroppedIterations:
		o.counts.drop(sample.Time, uint64(sample.Value))
	case sample.Metric.Name == begunMetric:
		o.counts.begin(sample.Time, agent)
	case sample.Metric.Name == failureMetric:
		words, _ := sample.Tags.Get(failureTag)
		o.counts.failure(agent, words)
	}
}

// isForged reports whether the script added a sample to a metric in which k6 counts cycles. k6's registry returns the
// same metric for the same name and kind: new Trend('iteration_duration', true) gives the script k6's own metric. k6
// sends the end of a cycle in a list of samples, and dropped cycles without an agent. A script's samples come one by
// one, with an agent.
func (o *cyclesOutput) isForged(sample metrics.Sample) bool {
	_, isOfAgent := sample.Metadata["vu"]
	switch sample.Metric {
	case o.builtin.IterationDuration, o.builtin.Iterations:
		return true
	case o.builtin.DroppedIterations:
		return isOfAgent
	default:
		return false
	}
}

// refuse ends the load, because the output cannot know the true counts.
func (o *cyclesOutput) refuse(err error) {
	if !o.isRefused.Swap(true) {
		o.stop(errext.WithExitCodeIfNone(err, exitcodes.ScriptException))
	}
}

// isOfLoad reports whether a sample belongs to the load. Samples before the load begins belong to setup(). All later
// samples belong to the load, even if the script changes their tags.
func (o *cyclesOutput) isOfLoad(tags *metrics.TagSet) bool {
	name, _ := tags.Get(metrics.TagScenario.String())
	return name == scenario || !o.counts.began.IsZero()
}

// noteCPU records the CPU time at the window's start and end. k6 sends its number of agents once per second, so the
// output calls noteCPU at least that often, even if no target answers.
func (o *cyclesOutput) noteCPU() {
	if o.counts.began.IsZero() {
		return
	}
	now := o.counts.part(time.Now())
	if now == o.part {
		return
	}
	o.part = now
	switch now {
	case inWindow:
		o.cpuBefore = cpuTime()
	case inTail:
		o.cpuAfter = cpuTime()
	}
}

// Stop prints the result.
func (o *cyclesOutput) Stop() error {
	if o.counts.began.IsZero() || o.isRefused.Load() {
		return nil
	}
	if o.part == inWindow {
		// The load ended within the window.
		o.cpuAfter = cpuTime()
	}
	result := o.counts.result()
	result.CPUSeconds = max(0, o.cpuAfter-o.cpuBefore).Seconds()
	result.CPUs = runtime.NumCPU()
	result.Version = version()
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "%s\n", line)
	return err
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// version returns the version of k6, which is a dependency of this program.
func version() string {
	if info, is := debug.ReadBuildInfo(); is {
		for _, module := range info.Deps {
			if module.Path == "go.k6.io/k6" {
				return module.Version
			}
		}
	}
	return ""
}
