package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fortio.org/fortio/periodic"
	"fortio.org/fortio/stats"
)

const (
	// mostSlices is the number of slices of a run of known length, and the largest number of any run. It is the
	// maximum that the injector accepts (MOST_SLICES in measure/src/slices.rs).
	mostSlices = 32
	// firstLength is the length of the slices of a run of unknown length, until there are too many.
	firstLength = 250 * time.Millisecond
	// leastForP99 is the smallest number of latencies with a 99th percentile. Of fewer, it would be the greatest.
	leastForP99 = 100
)

// slice contains the requests that began in a part of the run.
type slice struct {
	errors uint64
	// repeated is the number of errors that Fortio counts as successes, and repeatedTime is their time in seconds.
	repeated     uint64
	repeatedTime float64
	latencies    *stats.Histogram
}

func (s *slice) add(other *slice) {
	s.errors += other.errors
	s.repeated += other.repeated
	s.repeatedTime += other.repeatedTime
	other.errors, other.repeated, other.repeatedTime = 0, 0, 0
	// Empties the other.
	s.latencies.Transfer(other.latencies)
}

// connection has the requests of one connection in the slice in which its last request began. Only its own goroutine
// uses it, so a request waits for no other.
type connection struct {
	slice
	begin, end time.Duration
	// lastBegan is when the last request began, and lastEnded when the last request ended.
	lastBegan, lastEnded time.Duration
	isUsed               bool
	// isRepeated is whether Fortio sends the current request a second time.
	isRepeated bool
	// Two connections must not share a cache line.
	_ [64]byte
}

// recorder makes the slices while Fortio runs. Fortio calls it once before and once after each request.
type recorder struct {
	newHistogram func() *stats.Histogram
	// timeout is the longest time of a request, in seconds.
	timeout float64
	// start is when the first request began, in Unix nanoseconds.
	start       atomic.Int64
	connections []connection
	faults      faults

	mutex  sync.Mutex
	length time.Duration
	// isKnown is whether the length of the run is known. Requests that begin after it are in the last slice.
	isKnown bool
	slices  []slice
}

var _ periodic.AccessLogger = (*recorder)(nil)

func newRecorder(options *periodic.RunnerOptions, timeout time.Duration) *recorder {
	r := &recorder{
		timeout: timeout.Seconds(),
		newHistogram: func() *stats.Histogram {
			return stats.NewHistogram(options.Offset.Seconds(), options.Resolution)
		},
		connections: make([]connection, options.NumThreads),
		length:      firstLength,
	}
	if options.Exactly <= 0 && options.Duration > 0 {
		r.isKnown = true
		r.length = max(1, options.Duration/mostSlices)
	}
	for index := range r.connections {
		r.connections[index].latencies = r.newHistogram()
	}
	return r
}

// Info is Fortio's name for the logger.
func (r *recorder) Info() string { return "slices" }

// Start notes when the first request begins.
func (r *recorder) Start(ctx context.Context, _ periodic.ThreadID, _ int64, at time.Time) context.Context {
	if r.start.Load() == 0 {
		r.start.CompareAndSwap(0, at.UnixNano())
	}
	return ctx
}

// Report adds a request that has ended. Its latency is in seconds. If a used connection gives no answer in time, Fortio
// sends the request again and counts only the second answer (Fetch in fhttp/http_client.go). Here such a request is an
// error, unless the server may have closed an idle connection.
func (r *recorder) Report(_ context.Context, id periodic.ThreadID, _ int64, at time.Time, latency float64, ok bool, _ string) {
	c := &r.connections[id]
	// Another connection's first request may have begun before the one that set the start.
	since := max(0, time.Duration(at.UnixNano()-r.start.Load()))
	if since >= c.end {
		length := r.flush(c)
		c.begin = since - since%length
		c.end = c.begin + length
	}
	c.isUsed = true
	isClosed := c.isRepeated && since-c.lastEnded < mostIdle
	c.isRepeated = false
	c.lastBegan, c.lastEnded = since, since+time.Duration(latency*float64(time.Second))
	isLate := r.timeout > 0 && latency > r.timeout
	if ok && !isLate && !isClosed {
		c.latencies.Record(latency)
		return
	}
	c.errors++
	if ok {
		if !isLate {
			r.faults.closed.Add(1)
		}
		c.repeated++
		c.repeatedTime += latency
	}
}

// flush moves a connection's requests into their slice. It returns the length of the slices from now on.
func (r *recorder) flush(c *connection) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for !r.isKnown && c.begin >= mostSlices*r.length {
		r.widen()
	}
	index := min(int(c.begin/r.length), mostSlices-1)
	r.extend(index + 1)
	r.slices[index].add(&c.slice)
	return r.length
}

func (r *recorder) extend(number int) {
	for len(r.slices) < number {
		r.slices = append(r.slices, slice{latencies: r.newHistogram()})
	}
}

// widen makes one slice of each pair.
func (r *recorder) widen() {
	r.length *= 2
	for index := range r.slices {
		half := &r.slices[index/2]
		if index == 0 {
			continue
		}
		if index%2 == 0 {
			// The slice at half is empty: it is in a pair already.
			*half, r.slices[index] = r.slices[index], *half
		} else {
			half.add(&r.slices[index])
		}
	}
	r.slices = r.slices[:(len(r.slices)+1)/2]
}

// result is the JSON that the injector reads (Slices in measure/src/slices.rs).
type result struct {
	EndlessAnswers   uint64   `json:"endlessAnswers"`
	CutAnswers       uint64   `json:"cutAnswers"`
	ClosedRequests   uint64   `json:"closedRequests"`
	RepeatedRequests uint64   `json:"repeatedRequests"`
	RepeatedSeconds  float64  `json:"repeatedSeconds"`
	SliceSeconds     float64  `json:"sliceSeconds"`
	WholeSeconds     float64  `json:"wholeSeconds"`
	Successes        []int64  `json:"successes"`
	Errors           []uint64 `json:"errors"`
	MeanNanoseconds  []*int64 `json:"meanNanoseconds"`
	P99Nanoseconds   []*int64 `json:"p99Nanoseconds"`
}

// result returns the slices after the end of the run.
func (r *recorder) result() result {
	var whole, ended time.Duration
	isFirst := true
	for index := range r.connections {
		c := &r.connections[index]
		if !c.isUsed {
			continue
		}
		r.flush(c)
		ended = max(ended, c.lastEnded)
		if isFirst || c.lastBegan < whole {
			whole, isFirst = c.lastBegan, false
		}
	}
	if !isFirst {
		// No request begins while all connections wait for an answer.
		r.extend(min(int((ended+r.length-1)/r.length), mostSlices))
	}
	told := result{
		SliceSeconds:    r.length.Seconds(),
		WholeSeconds:    whole.Seconds(),
		EndlessAnswers:  r.faults.endless.Load(),
		CutAnswers:      r.faults.cut.Load(),
		ClosedRequests:  r.faults.closed.Load(),
		Successes:       []int64{},
		Errors:          []uint64{},
		MeanNanoseconds: []*int64{},
		P99Nanoseconds:  []*int64{},
	}
	for _, slice := range r.slices {
		latencies := slice.latencies.Export()
		told.Successes = append(told.Successes, latencies.Count)
		told.Errors = append(told.Errors, slice.errors)
		told.RepeatedRequests += slice.repeated
		told.RepeatedSeconds += slice.repeatedTime
		var mean, p99 *int64
		if latencies.Count > 0 {
			mean = nanoseconds(latencies.Avg)
		}
		if latencies.Count >= leastForP99 {
			// Within a bucket, Fortio interpolates.
			p99 = nanoseconds(rounded(latencies.CalcPercentile(99), 4))
		}
		told.MeanNanoseconds = append(told.MeanNanoseconds, mean)
		told.P99Nanoseconds = append(told.P99Nanoseconds, p99)
	}
	return told
}

func (r *recorder) write(path string) error {
	line, err := json.Marshal(r.result())
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(line, '\n'), 0o644)
}

func nanoseconds(seconds float64) *int64 {
	rounded := int64(math.Round(seconds * 1e9))
	return &rounded
}

func rounded(value float64, digits int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', digits-1, 64), 64)
	return rounded
}
