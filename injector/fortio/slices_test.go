package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"fortio.org/fortio/periodic"
)

var epoch = time.Unix(1_700_000_000, 0)

func recorderOf(connections int, duration time.Duration, requests int64) *recorder {
	return newRecorder(&periodic.RunnerOptions{
		NumThreads: connections,
		Duration:   duration,
		Exactly:    requests,
		Resolution: 0.0001,
	}, 3*time.Second)
}

// send adds a request that begins at a time after the run's first one.
func send(r *recorder, connection periodic.ThreadID, at time.Duration, latency float64, ok bool) {
	ctx := r.Start(context.Background(), connection, 0, epoch.Add(at))
	r.Report(ctx, connection, 0, epoch.Add(at), latency, ok, "200")
}

func equal[T comparable](t *testing.T, what string, found, expected T) {
	t.Helper()
	if found != expected {
		t.Errorf("%s: found %v, expected %v", what, found, expected)
	}
}

func near(t *testing.T, what string, found, expected float64) {
	t.Helper()
	if d := found - expected; d > 1e-9 || d < -1e-9 {
		t.Errorf("%s: found %v, expected %v", what, found, expected)
	}
}

func sums(told result) (successes int64, errors uint64, seconds float64) {
	for index, count := range told.Successes {
		successes += count
		errors += told.Errors[index]
		if mean := told.MeanNanoseconds[index]; mean != nil {
			seconds += float64(count) * float64(*mean) / 1e9
		}
	}
	return
}

func TestARunOfKnownLengthHas32Slices(t *testing.T) {
	r := recorderOf(1, 64*time.Second, 0)
	for second := range 64 {
		send(r, 0, time.Duration(second)*time.Second, 1, true)
	}
	told := r.result()
	equal(t, "slices", len(told.Successes), 32)
	near(t, "length", told.SliceSeconds, 2)
	near(t, "whole", told.WholeSeconds, 63)
	for index, count := range told.Successes {
		equal(t, "successes", count, 2)
		equal(t, "mean", *told.MeanNanoseconds[index], 1_000_000_000)
	}
}

func TestAnAnswerAfterTheTimeoutIsAnError(t *testing.T) {
	r := recorderOf(1, 32*time.Second, 0)
	send(r, 0, 0, 0.001, true)
	send(r, 0, time.Second, 3, true)
	send(r, 0, 5*time.Second, 3.25, true)
	// Fortio counts this one itself.
	send(r, 0, 9*time.Second, 3.5, false)
	told := r.result()
	successes, errors, _ := sums(told)
	equal(t, "successes", successes, 2)
	equal(t, "errors", errors, 2)
	equal(t, "late", told.RepeatedRequests, 1)
	near(t, "late seconds", told.RepeatedSeconds, 3.25)
}

func TestARequestAfterTheLengthIsInTheLastSlice(t *testing.T) {
	r := recorderOf(1, 32*time.Second, 0)
	send(r, 0, 0, 0.001, true)
	send(r, 0, 33*time.Second, 0.001, true)
	told := r.result()
	equal(t, "slices", len(told.Successes), 32)
	equal(t, "last", told.Successes[31], 1)
}

func TestARunOfUnknownLengthHasFewSlices(t *testing.T) {
	for _, c := range []struct {
		seconds, slices int
		length          float64
	}{{4, 16, 0.25}, {8, 32, 0.25}, {9, 18, 0.5}, {600, 19, 32}, {86_400, 22, 4096}} {
		r := recorderOf(1, 0, 1_000_000)
		for quarter := range 4 * c.seconds {
			send(r, 0, time.Duration(quarter)*250*time.Millisecond, 0.25, true)
		}
		told := r.result()
		equal(t, "slices", len(told.Successes), c.slices)
		near(t, "length", told.SliceSeconds, c.length)
		successes, _, _ := sums(told)
		equal(t, "successes", successes, int64(4*c.seconds))
	}
}

func TestAStallIsShown(t *testing.T) {
	r := recorderOf(1, 32*time.Second, 0)
	send(r, 0, 0, 0.5, true)
	send(r, 0, 1*time.Second, 31, true)
	told := r.result()
	equal(t, "slices", len(told.Successes), 32)
	equal(t, "within the stall", told.Successes[2], 0)
	if told.MeanNanoseconds[2] != nil {
		t.Error("a slice without a success has no mean")
	}
}

func TestErrorsAreNoLatencies(t *testing.T) {
	r := recorderOf(1, 32*time.Second, 0)
	send(r, 0, 0, 3, false)
	send(r, 0, 100*time.Millisecond, 0.002, true)
	told := r.result()
	equal(t, "errors", told.Errors[0], 1)
	equal(t, "successes", told.Successes[0], 1)
	equal(t, "mean", *told.MeanNanoseconds[0], 2_000_000)
}

func TestAPercentileNeedsAHundredLatencies(t *testing.T) {
	for _, number := range []int{99, 100, 1000} {
		r := recorderOf(1, 32*time.Second, 0)
		for index := range number {
			latency := 0.001
			if index%50 == 0 {
				latency = 0.1
			}
			send(r, 0, time.Duration(index)*time.Microsecond, latency, true)
		}
		p99 := r.result().P99Nanoseconds[0]
		if (p99 != nil) != (number >= 100) {
			t.Errorf("%d latencies: %v", number, p99)
		}
		if p99 != nil && (*p99 < 50_000_000 || *p99 > 100_000_000) {
			t.Errorf("%d latencies: %d ns", number, *p99)
		}
	}
}

// The race detector checks this test too: go test -race.
func TestSumsOfManyConnectionsAreTheTotals(t *testing.T) {
	for _, requests := range []int64{0, 1_000_000} {
		r := recorderOf(16, 40*time.Second, requests)
		var mutex sync.Mutex
		var successes int64
		var errors uint64
		var seconds float64
		var group sync.WaitGroup
		send(r, 0, 0, 0, false)
		errors++
		for connection := range 16 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(7, uint64(connection)))
				at := 0.0
				for at < 60 {
					latency, ok := random.ExpFloat64()/100, random.IntN(10) > 0
					send(r, periodic.ThreadID(connection), time.Duration(at*1e9), latency, ok)
					at += latency
					mutex.Lock()
					if ok {
						successes++
						seconds += latency
					} else {
						errors++
					}
					mutex.Unlock()
				}
			})
		}
		group.Wait()
		told := r.result()
		gotSuccesses, gotErrors, gotSeconds := sums(told)
		equal(t, "successes", gotSuccesses, successes)
		equal(t, "errors", gotErrors, errors)
		if d := gotSeconds - seconds; d > 1e-3 || d < -1e-3 {
			t.Errorf("sum of latencies: found %v, expected %v", gotSeconds, seconds)
		}
	}
}

func TestARequestOnAClosedConnectionIsAnErrorUnlessTheConnectionWasIdle(t *testing.T) {
	r := recorderOf(2, 10*time.Second, 0)
	closed := func(connection string) {
		line := `{"ts":1,"level":"info","msg":"Closing dead socket (err at first read)","err":"EOF","thread":` + connection + `,"run":0}`
		if _, err := r.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	send(r, 0, 0, 0.5, true)
	closed("1")
	closed("7")
	// The other connection was closed.
	send(r, 0, time.Second, 0.5, true)
	send(r, 1, time.Second/2, 0.25, true)
	closed("0")
	send(r, 0, 3*time.Second, 0.5, true)
	told := r.result()
	equal(t, "repeated requests", told.RepeatedRequests, 1)
	near(t, "their time", told.RepeatedSeconds, 0.25)
	successes, errors, _ := sums(told)
	equal(t, "successes", successes, 3)
	equal(t, "errors", errors, 1)
}

func TestARunWithoutRequestsHasNoSlices(t *testing.T) {
	told := recorderOf(2, time.Second, 0).result()
	equal(t, "slices", len(told.Successes), 0)
}

// The cost of the slices, next to about 10 µs of CPU per request of Fortio.
func BenchmarkReport(b *testing.B) {
	r := recorderOf(1, 0, 1<<40)
	at := time.Duration(0)
	for b.Loop() {
		at += 100 * time.Microsecond
		send(r, 0, at, 0.0021, true)
	}
}
