package main

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// window says when cycles count. All three follow one another in one load without a break: the warm-up, the
// measured window, and the tail, which lasts until the load ends.
type window struct {
	warmUp   time.Duration
	measured time.Duration
	// A cycle that takes longer has failed.
	timeout time.Duration
}

// The most names that are told apart, and the most words of failures: a script could make one for every cycle.
const (
	mostChecks   = 16
	mostFailures = 8
	otherChecks  = "(others)"
	// The most characters of a check's name, and of what a script threw: the report has little room. The operator
	// keeps to the first one too (MOST_NAME_CHARS of measure/src/k6/result.rs).
	mostOfName    = 128
	mostOfFailure = 200
)

// shortened gives a text of at most so many characters. A longer one ends with a digest, so that two stay two.
func shortened(text string, most int) string {
	characters := []rune(text)
	if len(characters) <= most {
		return text
	}
	digest := fmt.Sprintf("… %x", sha256.Sum256([]byte(text)))[:len("… ")+8]
	return string(characters[:most-len([]rune(digest))]) + digest
}

// counts is what came of a load so far. A cycle, a request and a check belong to the part of the load in which
// they ended; so what was under way when the window began is counted, and what is under way at its end is not. But
// a cycle that is under way at the window's end and has taken too long by then has failed in the window: it may
// never end.
type counts struct {
	window   window
	began    time.Time
	last     time.Time
	warmUp   span
	tail     span
	done     latencies
	course   [slices]slice
	failed   latencies
	dropped  uint64
	requests requests
	checks   map[string]*check
	failures []string
	// Agents of whose present cycle something has failed already.
	spoiled map[string]bool
	// When each agent's present cycle began.
	begun map[string]time.Time
	// When each agent was last heard of: its cycle began, or it had an answer.
	heard map[string]time.Time
}

// slices of equal length that the window has, so that it can be seen how long cycles take in the course of it. The
// injector takes no more (MOST_SLICES of its course.rs).
const slices = 16

type slice struct {
	cycles uint64
	sum    float64
}

// span is a part of the load beside the measured window.
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
	}
}

type part int

const (
	inWarmUp part = iota
	inWindow
	inTail
)

// part of the load at a time. The load begins with the first thing that is heard of it.
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

// request counts one that an agent sent. Time is what it waited for the other side: to connect, and to answer.
func (c *counts) request(at time.Time, agent string, took time.Duration, code string, failed bool) {
	if failed {
		c.spoiled[agent] = true
	}
	part := c.part(at)
	c.heard[agent] = at
	c.waited(at.Add(-took), at)
	if part != inWindow {
		return
	}
	c.requests.Count++
	c.requests.Codes[code]++
	if failed {
		c.requests.Failed++
	}
}

// waited adds what lies in the window of an agent's time without an answer.
func (c *counts) waited(from, to time.Time) {
	start, end := c.began.Add(c.window.warmUp), c.end()
	if from.Before(start) {
		from = start
	}
	if to.After(end) {
		to = end
	}
	c.requests.WaitedSeconds += max(0, to.Sub(from)).Seconds()
}

// end of the window.
func (c *counts) end() time.Time { return c.began.Add(c.window.warmUp + c.window.measured) }

// check counts one of the script's own checks.
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

// failure notes that the script threw, and what.
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

// begin notes that an agent's next cycle begins.
func (c *counts) begin(at time.Time, agent string) {
	c.part(at)
	c.begun[agent] = at
	c.heard[agent] = at
}

// overdue says for how long a cycle had been under way when the window ended, and whether that was too long.
func (c *counts) overdue(began time.Time) (time.Duration, bool) {
	took := c.end().Sub(began)
	return took, took > c.window.timeout
}

// cycle counts one that has ended.
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
			c.failed.add(soFar.Seconds())
			return
		}
		beside(&c.tail)
	case inWindow:
		if failed {
			c.failed.add(took.Seconds())
		} else {
			c.done.add(took.Seconds())
			slice := &c.course[slices*(at.Sub(c.began)-c.window.warmUp)/c.window.measured]
			slice.cycles++
			slice.sum += took.Seconds()
		}
	}
}

// drop counts cycles that were due, and no agent was free to begin them.
func (c *counts) drop(at time.Time, number uint64) {
	if c.part(at) == inWindow {
		c.dropped += number
	}
}

// result is the line that is printed.
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
	Course           course            `json:"course"`
}

// course has the cycles of each slice of which nothing failed, and how long they took in the mean, to seven digits.
type course struct {
	SliceSeconds float64   `json:"sliceSeconds"`
	WholeSeconds float64   `json:"wholeSeconds"`
	Requests     []uint64  `json:"requests"`
	MeanSeconds  []float64 `json:"meanSeconds"`
}

type toldSpan struct {
	StartUnixSeconds float64 `json:"startUnixSeconds"`
	DurationSeconds  float64 `json:"durationSeconds"`
	Requests         uint64  `json:"requests"`
	Errors           uint64  `json:"errors"`
}

// result of the load, which has ended, as far as it went. It is asked for once.
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
		// Of a request that has no answer yet nothing is heard.
		c.waited(c.heard[agent], c.last)
		if soFar, is := c.overdue(began); is && whole >= end {
			c.failed.add(soFar.Seconds())
		}
	}
	// Where the failed ones lie nobody asks, and the report has little room.
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
		Course:           c.toldCourse(length(c.window.warmUp, c.window.measured)),
	}
}

func (c *counts) toldCourse(wholeSeconds float64) course {
	told := course{SliceSeconds: c.window.measured.Seconds() / slices, WholeSeconds: wholeSeconds}
	for _, slice := range c.course {
		mean := slice.sum / float64(max(1, slice.cycles))
		told.Requests = append(told.Requests, slice.cycles)
		told.MeanSeconds = append(told.MeanSeconds, rounded(mean, 7))
	}
	return told
}

func unixSeconds(at time.Time) float64 {
	return float64(at.UnixMicro()) / 1e6
}
