// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var epoch = time.Unix(1_700_000_000, 0)

// at returns a time in milliseconds after the load began.
func at(milliseconds int) time.Time { return epoch.Add(time.Duration(milliseconds) * time.Millisecond) }

// load returns a load that has begun, with a warm-up of one second and a window of two seconds.
func load() *counts {
	c := newCounts(window{warmUp: time.Second, measured: 2 * time.Second, timeout: 500 * time.Millisecond})
	c.request(at(0), "1", time.Millisecond, "200", false)
	return c
}

func equal[T comparable](t *testing.T, what string, found, expected T) {
	t.Helper()
	if found != expected {
		t.Errorf("%s: found %v, expected %v", what, found, expected)
	}
}

func TestACycleBelongsToThePartInWhichItEnds(t *testing.T) {
	c := load()
	for _, ended := range []int{999, 1000, 2999, 3000, 3500} {
		c.cycle(at(ended), "1", 10*time.Millisecond)
	}
	told := c.result()
	equal(t, "warm-up", told.WarmUp.Requests, 1)
	equal(t, "window", told.Cycles.Count, 2)
	equal(t, "tail", told.Tail.Requests, 2)
	equal(t, "start", told.StartUnixSeconds, 1_700_000_001)
	equal(t, "length", told.DurationSeconds, 2)
	equal(t, "start of the tail", told.Tail.StartUnixSeconds, 1_700_000_003)
	equal(t, "length of the tail", told.Tail.DurationSeconds, 0.5)
}

func TestTheResultHasTheSlicesOfTheWindow(t *testing.T) {
	c := load()
	for _, ended := range []int{999, 1000, 1062, 1063, 2999, 3000} {
		c.cycle(at(ended), "1", time.Duration(ended)*time.Microsecond)
	}
	c.check(at(1500), "1", "answers", false)
	c.cycle(at(1500), "1", time.Millisecond)
	for range 100 {
		c.cycle(at(2000), "1", time.Millisecond)
	}
	told := c.result().Slices
	equal(t, "slices", len(told.Successes), mostSlices)
	equal(t, "length", told.SliceSeconds, 0.0625)
	for index, expected := range map[int]uint64{0: 2, 1: 1, 8: 0, 16: 100, 31: 1} {
		equal(t, "cycles", told.Successes[index], expected)
	}
	equal(t, "failed", told.Errors[8], 1)
	equal(t, "whole", told.WholeSeconds, 2)
	equal(t, "mean", *told.MeanNanoseconds[0], 1_031_000)
	equal(t, "p99", *told.P99Nanoseconds[16], 1_000_000)
	if told.P99Nanoseconds[0] != nil || told.MeanNanoseconds[8] != nil {
		t.Error("a value of too few cycles")
	}
}

func TestSumsOverTheSlicesAreTheTotals(t *testing.T) {
	c := load()
	for ended := 900; ended < 3400; ended += 3 {
		agent := fmt.Sprint(ended % 7)
		c.begin(at(ended-3), agent)
		if ended%11 == 0 {
			c.failure(agent, "no")
		}
		c.cycle(at(ended), agent, time.Duration(ended%700)*time.Millisecond)
	}
	// Still open at the window's end, and overdue.
	c.begin(at(1200), "8")
	told := c.result()
	var done, failed uint64
	for index, count := range told.Slices.Successes {
		done += count
		failed += told.Slices.Errors[index]
	}
	equal(t, "cycles", done, told.Cycles.Count)
	equal(t, "failed cycles", failed, told.FailedCycles.Count)
}

func TestAPercentileIsInterpolatedInItsBucket(t *testing.T) {
	var l latencies
	for index := range 1000 {
		l.add(float64(index+1) / 1000)
	}
	for _, percentage := range []float64{50, 99, 100} {
		found, exact := l.percentile(percentage), percentage/100
		if found < 0.97*exact || found > 1.03*exact {
			t.Errorf("%v: %v", percentage, found)
		}
	}
}

func TestAnyFailureInACycleMakesItFail(t *testing.T) {
	for name, spoil := range map[string]func(c *counts){
		"request": func(c *counts) { c.request(at(1500), "1", time.Millisecond, "500", true) },
		"check":   func(c *counts) { c.check(at(1500), "1", "answers", false) },
		"throw":   func(c *counts) { c.failure("1", "no") },
		"both": func(c *counts) {
			c.check(at(1500), "1", "answers", false)
			c.failure("1", "no")
		},
	} {
		c := load()
		spoil(c)
		// The failure affects neither another agent's cycle nor the next cycle of the same agent.
		c.cycle(at(1600), "2", time.Millisecond)
		c.cycle(at(1601), "1", time.Millisecond)
		c.cycle(at(1700), "1", time.Millisecond)
		told := c.result()
		equal(t, name+": failed", told.FailedCycles.Count, 1)
		equal(t, name+": done", told.Cycles.Count, 2)
	}
	c := load()
	c.cycle(at(1600), "1", 500*time.Millisecond)
	c.cycle(at(2200), "1", 501*time.Millisecond)
	equal(t, "too late", c.result().FailedCycles.Count, 1)
}

func TestACycleThatNeverEndsFailsAfterTheTimeout(t *testing.T) {
	c := load()
	c.begin(at(1400), "1")
	c.begin(at(2400), "2")
	// At the window's end, cycle 3 is within its timeout and cycle 4 has ended.
	c.begin(at(2600), "3")
	c.begin(at(1500), "4")
	c.cycle(at(1510), "4", 10*time.Millisecond)
	// In the tail, an overdue cycle ends, and one that is not overdue.
	c.cycle(at(3400), "2", time.Second)
	c.cycle(at(3050), "5", 40*time.Millisecond)
	told := c.result()
	equal(t, "failed", told.FailedCycles.Count, 2)
	equal(t, "done", told.Cycles.Count, 1)
	equal(t, "tail", told.Tail.Requests, 1)
	equal(t, "seconds", told.FailedCycles.SumSeconds, 1.6+0.6)
}

func TestAFailureInTheWarmUpFailsTheCycleThatEndsInTheWindow(t *testing.T) {
	c := load()
	c.check(at(990), "1", "answers", false)
	c.cycle(at(1010), "1", time.Millisecond)
	told := c.result()
	equal(t, "failed", told.FailedCycles.Count, 1)
	equal(t, "checks of the window", len(told.Checks), 0)
}

func TestRequestsAndDroppedCyclesOfTheWindowAreCounted(t *testing.T) {
	c := load()
	c.request(at(1500), "1", 30*time.Millisecond, "200", false)
	c.request(at(1600), "1", 20*time.Millisecond, "404", true)
	c.request(at(3000), "1", 20*time.Millisecond, "200", false) // sent in the window, ended in the tail
	c.drop(at(500), 1)
	c.drop(at(1500), 2)
	told := c.result()
	equal(t, "requests", told.Requests.Count, 2)
	equal(t, "failed", told.Requests.Failed, 1)
	equal(t, "404", told.Requests.Codes["404"], 1)
	equal(t, "dropped", told.DroppedCycles, 2)
	waited(t, told, 0.07)
}

func waited(t *testing.T, told result, expected float64) {
	t.Helper()
	if math.Abs(told.Requests.WaitedSeconds-expected) > 1e-9 {
		t.Errorf("waited %v s, expected %v s", told.Requests.WaitedSeconds, expected)
	}
}

func TestOnlyWaitingTimeWithinTheWindowCounts(t *testing.T) {
	c := load()
	c.begin(at(100), "1")
	c.request(at(900), "1", 800*time.Millisecond, "200", false)
	c.request(at(1200), "1", 300*time.Millisecond, "200", false)
	c.request(at(3400), "1", 500*time.Millisecond, "200", false)
	// Agents 2 and 3 wait without an answer to the end. Agent 3 had an earlier answer.
	c.begin(at(500), "2")
	c.begin(at(1000), "3")
	c.request(at(1500), "3", 500*time.Millisecond, "200", false)
	c.begin(at(3100), "4")
	c.part(at(5000))
	told := c.result()
	equal(t, "requests", told.Requests.Count, 2)
	waited(t, told, 0.2+0.1+2+0.5+1.5)
}

func TestRequestsAtTheSameTimeWaitOnce(t *testing.T) {
	c := load()
	c.begin(at(100), "1")
	for _, end := range []int{1600, 1700, 1700, 1800} {
		c.request(at(end), "1", time.Duration(end-1500)*time.Millisecond, "200", false)
	}
	// Another agent at the same time.
	c.request(at(1800), "2", 300*time.Millisecond, "200", false)
	told := c.result()
	equal(t, "requests", told.Requests.Count, 5)
	waited(t, told, 0.3+0.3)
}

func TestTheNumberOfNamesAndTextsIsLimited(t *testing.T) {
	c := load()
	for index := range 100 {
		c.check(at(1500), "1", string(rune('A'+index)), index%2 == 0)
		c.failure("1", string(rune('A'+index)))
	}
	equal(t, "checks", len(c.result().Checks), mostChecks+1)
	equal(t, "others", c.checks[otherChecks].Passed+c.checks[otherChecks].Failed, 100-mostChecks)
	equal(t, "failures", len(c.result().FirstFailures), mostFailures)
}

func TestAnInterruptedLoadHasAShorterWindow(t *testing.T) {
	c := load()
	c.cycle(at(1750), "1", time.Millisecond)
	told := c.result()
	equal(t, "window", told.DurationSeconds, 0.75)
	equal(t, "tail", told.Tail.DurationSeconds, 0)
}

func TestAHistogramHasAllAddedTimes(t *testing.T) {
	var l latencies
	var sum float64
	for index := 1; index <= 1000; index++ {
		seconds := float64(index) * 1e-5
		l.add(seconds)
		sum += seconds
	}
	told := l.histogram()
	var counted uint64
	end := told.MinSeconds
	for _, bucket := range told.Buckets {
		counted += bucket.Count
		if bucket.StartSeconds < end || bucket.EndSeconds < bucket.StartSeconds {
			t.Errorf("bucket from %v to %v after %v", bucket.StartSeconds, bucket.EndSeconds, end)
		}
		end = bucket.EndSeconds
		if bucket.EndSeconds > 1.06*bucket.StartSeconds+1e-9 {
			t.Errorf("bucket from %v to %v is too wide", bucket.StartSeconds, bucket.EndSeconds)
		}
	}
	equal(t, "count", told.Count, 1000)
	equal(t, "in buckets", counted, 1000)
	equal(t, "least", told.Buckets[0].StartSeconds, 1e-5)
	equal(t, "most", end, 0.01)
	if math.Abs(told.SumSeconds-sum) > 1e-9 || math.Abs(told.StandardDeviationSeconds-0.002887) > 1e-6 {
		t.Errorf("sum %v, standard deviation %v", told.SumSeconds, told.StandardDeviationSeconds)
	}
	equal(t, "none", len((&latencies{}).histogram().Buckets), 0)
}

func TestShortenedNamesStayDifferent(t *testing.T) {
	c := load()
	long := strings.Repeat("ä", 30_000)
	for number := range 20 {
		c.check(at(1500), "1", fmt.Sprintf("%s%d", long, number), false)
		c.failure("1", fmt.Sprintf("%s%d", long, number))
	}
	c.check(at(1500), "1", "short", true)
	told := c.result()
	equal(t, "checks", len(told.Checks), mostChecks+1)
	for name := range told.Checks {
		if length := utf8.RuneCountInString(name); length > mostOfName {
			t.Errorf("%d characters: %s", length, name)
		}
	}
	equal(t, "failures", len(told.FirstFailures), mostFailures)
	for _, words := range told.FirstFailures {
		equal(t, "characters", utf8.RuneCountInString(words), mostOfFailure)
	}
	exact := strings.Repeat("a", mostOfName)
	equal(t, "longest name", shortened(exact, mostOfName), exact)
	if other := shortened(exact+"b", mostOfName); !strings.HasPrefix(other, exact[:100]) {
		t.Error(other)
	}
}
