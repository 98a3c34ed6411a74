// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"
)

// window is the time in which cycles count. One load without a gap consists of the warm-up, the measured window and
// the tail, which lasts until the load ends.
type window struct {
	warmUp   time.Duration
	measured time.Duration
	// A cycle that takes longer has failed.
	timeout time.Duration
}

// Limits of the report: a script could create a new check name or failure text in every cycle.
const (
	mostChecks   = 16
	mostFailures = 8
	otherChecks  = "(others)"
	// Longest check name and longest failure text in characters. The operator enforces the first limit too
	// (MOST_NAME_CHARS in measure/src/k6/result.rs).
	mostOfName    = 128
	mostOfFailure = 200
)

// shortened returns a text of at most `most` characters. A shortened text ends with a digest, so different texts stay
// different.
func shortened(text string, most int) string {
	characters := []rune(text)
	if len(characters) <= most {
		return text
	}
	digest := fmt.Sprintf("… %x", sha256.Sum256([]byte(text)))[:len("… ")+8]
	return string(characters[:most-len([]rune(digest))]) + digest
}

// counts are the counters of a load so far. A cycle, a request and a check belong to the part of the load in which
// they end. A cycle that is open at the window's start counts in the window; a cycle that is open at its end does not.
// There is one exception, because a cycle may never end: a cycle that is open at the window's end and exceeds the
// timeout has failed in the window.
type counts struct {
	window   window
	began    time.Time
	last     time.Time
	warmUp   span
	tail     span
	done     latencies
	slices   [mostSlices]slice
	failed   latencies
	dropped  uint64
	requests requests
	checks   map[string]*check
	failures []string
	// Agents in whose current cycle something has failed.
	spoiled map[string]bool
	// Start of each agent's current cycle.
	begun map[string]time.Time
	// Time of each agent's last sample: the start of its cycle, or an answer.
	heard map[string]time.Time
	// Time up to which each agent's waiting is counted.
	waitedUntil map[string]time.Time
}

// mostSlices is the number of slices of equal length in the window. It is the maximum that the injector accepts
// (MOST_SLICES in measure/src/slices.rs).
const mostSlices = 32

// leastForP99 is the smallest number of durations with a 99th percentile. Of fewer, it would be the greatest.
const leastForP99 = 100

// slice contains the cycles that ended in a part of the window.
type slice struct {
	failed uint64
	done   latencies
}

// slice returns the slice of a time. Cycles that are open at the window's end and count belong to the last slice.
func (c *counts) slice(at time.Time) *slice {
	index := mostSlices * (at.Sub(c.began) - c.window.warmUp) / c.window.measured
	return &c.slices[min(index, mostSlices-1)]
}

// fail counts a failed cycle of the window.
func (c *counts) fail(at time.Time, took time.Duration) {
	c.failed.add(took.Seconds())
	c.slice(at).failed++
}

// span counts the cycles of the warm-up or the tail.
type span struct {
	cycles uint64
	failed uint64
}

type requests struct {
	Count         uint64            `json:"count"`
	Failed        uint64            `json:"failed"`
	WaitedSeconds float64           `json:"waitedSeconds"`
	Codes         map[string]uint64 `json:"codes"`
}

type check struct {
	Passed uint64 `json:"passed"`
	Failed uint64 `json:"failed"`
}

func newCounts(window window) *counts {
	return &counts{
		window:   window,
		requests: requests{Codes: map[string]uint64{}},
		checks:   map[string]*check{},
		spoiled:  map[string]bool{},
		begun:    map[string]time.Time{},
		heard:    map[string]time.Time{},

		waitedUntil: map[string]time.Time{},
	}
}

type part int

const (
	inWarmUp part = iota
	inWindow
	inTail
)

// part returns the part of the load at a time. The load begins with its first sample.
func (c *counts) part(at time.Time) part {
	if c.began.IsZero() {
		c.began = at
	}
	if at.After(c.last) {
		c.last = at
	}
	since := at.Sub(c.began)
	switch {
	case since < c.window.warmUp:
		return inWarmUp
	case since < c.window.warmUp+c.window.measured:
		return inWindow
	default:
		return inTail
	}
}

// request counts a request of an agent. took is the time in which the agent waited for the target: to connect and to
// answer.
func (c *counts) request(at time.Time, agent string, took time.Duration, code string, failed bool) {
	if failed {
		c.spoiled[agent] = true
	}
	part := c.part(at)
	c.heard[agent] = at
	c.waited(agent, at.Add(-took), at)
	if part != inWindow {
		return
	}
	c.requests.Count++
	c.requests.Codes[code]++
	if failed {
		c.requests.Failed++
	}
}

// waited adds the part of an agent's waiting time that lies in the window. The time of requests at the same time
// (http.batch) counts once. If a request begins before others and ends after them, the time before their end is not
// counted.
func (c *counts) waited(agent string, from, to time.Time) {
	start, end := c.began.Add(c.window.warmUp), c.end()
	if until := c.waitedUntil[agent]; from.Before(until) {
		from = until
	}
	if to.After(c.waitedUntil[agent]) {
		c.waitedUntil[agent] = to
	}
	if from.Before(start) {
		from = start
	}
	if to.After(end) {
		to = end
	}
	c.requests.WaitedSeconds += max(0, to.Sub(from)).Seconds()
}

// end returns the end of the window.
func (c *counts) end() time.Time { return c.began.Add(c.window.warmUp + c.window.measured) }

// check counts one check of the script.
func (c *counts) check(at time.Time, agent, name string, passed bool) {
	if !passed {
		c.spoiled[agent] = true
	}
	if c.part(at) != inWindow {
		return
	}
	name = shortened(name, mostOfName)
	told := c.checks[name]
	if told == nil && len(c.checks) >= mostChecks {
		name = otherChecks
		told = c.checks[name]
	}
	if told == nil {
		told = &check{}
		c.checks[name] = told
	}
	if passed {
		told.Passed++
	} else {
		told.Failed++
	}
}

// failure records that the script threw an error, with its text.
func (c *counts) failure(agent, words string) {
	c.spoiled[agent] = true
	words = shortened(words, mostOfFailure)
	for _, known := range c.failures {
		if known == words {
			return
		}
	}
	if words != "" && len(c.failures) < mostFailures {
		c.failures = append(c.failures, words)
	}
}

// begin records the start of an agent's next cycle.
func (c *counts) begin(at time.Time, agent string) {
	c.part(at)
	c.begun[agent] = at
	c.heard[agent] = at
}

// overdue returns the duration of a cycle up to the window's end, and whether it exceeds the timeout.
func (c *counts) overdue(began time.Time) (time.Duration, bool) {
	took := c.end().Sub(began)
	return took, took > c.window.timeout
}

// cycle counts a cycle that has ended.
func (c *counts) cycle(at time.Time, agent string, took time.Duration) {
	failed := c.spoiled[agent] || took > c.window.timeout
	delete(c.spoiled, agent)
	delete(c.begun, agent)
	beside := func(part *span) {
		part.cycles++
		if failed {
			part.failed++
		}
	}
	switch c.part(at) {
	case inWarmUp:
		beside(&c.warmUp)
	case inTail:
		if soFar, is := c.overdue(at.Add(-took)); is {
			c.fail(at, soFar)
			return
		}
		beside(&c.tail)
	case inWindow:
		if failed {
			c.fail(at, took)
		} else {
			c.done.add(took.Seconds())
			c.slice(at).done.add(took.Seconds())
		}
	}
}

// drop counts cycles that were due while no agent was free.
func (c *counts) drop(at time.Time, number uint64) {
	if c.part(at) == inWindow {
		c.dropped += number
	}
}

// result is the JSON line that the output prints.
type result struct {
	Version          string            `json:"version"`
	StartUnixSeconds float64           `json:"startUnixSeconds"`
	DurationSeconds  float64           `json:"durationSeconds"`
	Cycles           histogram         `json:"cycles"`
	FailedCycles     histogram         `json:"failedCycles"`
	DroppedCycles    uint64            `json:"droppedCycles"`
	Requests         requests          `json:"requests"`
	Checks           map[string]*check `json:"checks"`
	FirstFailures    []string          `json:"firstFailures"`
	CPUSeconds       float64           `json:"cpuSeconds"`
	CPUs             int               `json:"cpus"`
	WarmUp           toldSpan          `json:"warmUp"`
	Tail             toldSpan          `json:"tail"`
	Slices           toldSlices        `json:"slices"`
}

// toldSlices are the slices as the injector reads them (Slices in measure/src/slices.rs).
type toldSlices struct {
	SliceSeconds    float64  `json:"sliceSeconds"`
	WholeSeconds    float64  `json:"wholeSeconds"`
	Successes       []uint64 `json:"successes"`
	Errors          []uint64 `json:"errors"`
	MeanNanoseconds []*int64 `json:"meanNanoseconds"`
	P99Nanoseconds  []*int64 `json:"p99Nanoseconds"`
}

type toldSpan struct {
	StartUnixSeconds float64 `json:"startUnixSeconds"`
	DurationSeconds  float64 `json:"durationSeconds"`
	Requests         uint64  `json:"requests"`
	Errors           uint64  `json:"errors"`
}

// result returns the result of the load after its end, even if the load ended early. It may be called only once.
func (c *counts) result() result {
	whole := c.last.Sub(c.began)
	length := func(from, most time.Duration) float64 {
		return max(0, min(whole-from, most)).Seconds()
	}
	start := c.began.Add(c.window.warmUp)
	end := c.window.warmUp + c.window.measured
	told := func(from, most time.Duration, part span) toldSpan {
		return toldSpan{
			StartUnixSeconds: unixSeconds(c.began.Add(from)),
			DurationSeconds:  length(from, most),
			Requests:         part.cycles,
			Errors:           part.failed,
		}
	}
	for agent, began := range c.begun {
		// k6 sends no sample for a request without an answer, so its waiting time is added here.
		c.waited(agent, c.heard[agent], c.last)
		if soFar, is := c.overdue(began); is && whole >= end {
			c.fail(c.end(), soFar)
		}
	}
	// The report's size is limited, and no figure needs the buckets of failed cycles.
	failed := c.failed.histogram()
	failed.Buckets = []bucket{}
	return result{
		StartUnixSeconds: unixSeconds(start),
		DurationSeconds:  length(c.window.warmUp, c.window.measured),
		Cycles:           c.done.histogram(),
		FailedCycles:     failed,
		DroppedCycles:    c.dropped,
		Requests:         c.requests,
		Checks:           c.checks,
		FirstFailures:    append([]string{}, c.failures...),
		WarmUp:           told(0, c.window.warmUp, c.warmUp),
		Tail:             told(end, whole, c.tail),
		Slices:           c.toldSlices(length(c.window.warmUp, c.window.measured)),
	}
}

func (c *counts) toldSlices(wholeSeconds float64) toldSlices {
	told := toldSlices{SliceSeconds: c.window.measured.Seconds() / mostSlices, WholeSeconds: wholeSeconds}
	for index := range c.slices {
		slice := &c.slices[index]
		var mean, p99 *int64
		if slice.done.count > 0 {
			mean = nanoseconds(slice.done.sum / float64(slice.done.count))
		}
		if slice.done.count >= leastForP99 {
			p99 = nanoseconds(rounded(slice.done.percentile(99), 4))
		}
		told.Successes = append(told.Successes, slice.done.count)
		told.Errors = append(told.Errors, slice.failed)
		told.MeanNanoseconds = append(told.MeanNanoseconds, mean)
		told.P99Nanoseconds = append(told.P99Nanoseconds, p99)
	}
	return told
}

func nanoseconds(seconds float64) *int64 {
	rounded := int64(math.Round(seconds * 1e9))
	return &rounded
}

func unixSeconds(at time.Time) float64 {
	return float64(at.UnixMicro()) / 1e6
}
