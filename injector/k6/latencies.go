// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"math"
	"sort"
	"strconv"
)

// latencies is a histogram of times in seconds, with their exact count, sum and extremes.
type latencies struct {
	count         uint64
	least, most   float64
	sum           float64
	sumOfSquares  float64
	countsByBound []uint64
}

// Buckets per doubling of the time. A bucket is 4.4 % wide, so the error of a percentile is at most half of it.
const bucketsPerDoubling = 16

// bounds are the upper ends of the buckets in seconds, from 1 µs to about 20 minutes. Four digits keep the report
// short.
var bounds = func() []float64 {
	var ends []float64
	for index := range 30 * bucketsPerDoubling {
		end := 1e-6 * math.Exp2(float64(index)/bucketsPerDoubling)
		ends = append(ends, rounded(end, 4))
	}
	return append(ends, math.Inf(1))
}()

func rounded(value float64, digits int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', digits-1, 64), 64)
	return rounded
}

func (l *latencies) add(seconds float64) {
	if l.count == 0 {
		l.least, l.most = seconds, seconds
		l.countsByBound = make([]uint64, len(bounds))
	}
	l.count++
	l.least, l.most = min(l.least, seconds), max(l.most, seconds)
	l.sum += seconds
	l.sumOfSquares += seconds * seconds
	l.countsByBound[sort.SearchFloat64s(bounds, seconds)]++
}

// histogram is the JSON form of latencies. A bucket contains the times above its start, up to and including its end.
type histogram struct {
	Count                    uint64   `json:"count"`
	MinSeconds               float64  `json:"minSeconds"`
	MaxSeconds               float64  `json:"maxSeconds"`
	SumSeconds               float64  `json:"sumSeconds"`
	StandardDeviationSeconds float64  `json:"standardDeviationSeconds"`
	Buckets                  []bucket `json:"buckets"`
}

type bucket struct {
	StartSeconds float64 `json:"startSeconds"`
	EndSeconds   float64 `json:"endSeconds"`
	Count        uint64  `json:"count"`
}

func (l *latencies) histogram() histogram {
	told := histogram{
		Count:      l.count,
		MinSeconds: l.least,
		MaxSeconds: l.most,
		SumSeconds: l.sum,
		Buckets:    []bucket{},
	}
	if l.count > 0 {
		mean := l.sum / float64(l.count)
		variance := l.sumOfSquares/float64(l.count) - mean*mean
		told.StandardDeviationSeconds = math.Sqrt(max(variance, 0))
	}
	for index, count := range l.countsByBound {
		if count == 0 {
			continue
		}
		start := 0.0
		if index > 0 {
			start = bounds[index-1]
		}
		told.Buckets = append(told.Buckets, bucket{
			StartSeconds: max(start, l.least),
			EndSeconds:   min(bounds[index], l.most),
			Count:        count,
		})
	}
	return told
}

// percentile returns the time that a percentage of the times does not exceed. Within a bucket, the times count as evenly
// spread (merged_percentiles in measure/src/latency.rs).
func (l *latencies) percentile(percentage float64) float64 {
	wanted := percentage / 100 * float64(l.count)
	below := 0.0
	for _, bucket := range l.histogram().Buckets {
		count := float64(bucket.Count)
		if below+count >= wanted {
			return bucket.StartSeconds + (wanted-below)/count*(bucket.EndSeconds-bucket.StartSeconds)
		}
		below += count
	}
	return l.most
}
