package metrics

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Of kinds that somebody makes up there are 16 series and one for the rest, and no
// observation is lost.
func TestKindsAreBounded(t *testing.T) {
	w := NewWorker(prometheus.NewRegistry())
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 100 {
				w.TaskSeconds.Observe(fmt.Sprint("kind ", (i+g)%50), 1)
			}
		})
	}
	all.Wait()
	w.TaskSeconds.Observe("", 1)
	total, names := uint64(0), make(map[string]bool)
	for _, m := range read(w.TaskSeconds) {
		total += m.Histogram.GetSampleCount()
		names[m.Label[0].GetValue()] = true
	}
	if len(names) != maxKinds+1 || !names[Other] || total != 401 {
		t.Errorf("%d kinds, %d tasks: %v", len(names), total, names)
	}
}

// Of workers there are 256 and one for the rest. Those that are gone for long make
// room; the leadership's end takes all.
func TestSharesAreBounded(t *testing.T) {
	s := NewCoordinator(prometheus.NewRegistry()).Shares
	now := time.Now()
	for i := range 300 {
		s.Add(fmt.Sprint("w", i), 2, time.Second, now)
	}
	share := func(worker string) float64 { return value(s.tasks.WithLabelValues(worker)) }
	many := func() int {
		ch := make(chan prometheus.Metric, 1000)
		s.tasks.Collect(ch)
		return len(ch)
	}
	if many() != maxWorkers+1 || share("w0") != 2 || share(Other) != 2*(300-maxWorkers) {
		t.Errorf("%d series, %v of w0, %v of others", many(), share("w0"), share(Other))
	}
	here := func(worker string) bool { return worker == "w0" }
	s.Expire(here, now.Add(workerKept-time.Second))
	if many() != maxWorkers+1 {
		t.Errorf("%d series: some are gone too soon", many())
	}
	s.Expire(here, now.Add(workerKept+time.Second))
	if many() != 2 { // of w0 and of the rest
		t.Errorf("%d series after all but one worker are gone", many())
	}
	s.Add("new", 1, 0, now)
	if share("new") != 1 {
		t.Error("there is no room for a new worker")
	}
	rest := share(Other)
	s.Add(Other, 3, 0, now) // a worker may be called so
	s.Expire(func(string) bool { return false }, now.Add(2*workerKept))
	if share(Other) != rest+3 {
		t.Errorf("%v tasks of others, of %v", share(Other), rest+3)
	}
	s.Reset()
	if many() != 0 {
		t.Errorf("%d series after the leadership", many())
	}
	s.Add("new", rand.IntN(5)+1, time.Second, now)
	if share("new") == 0 {
		t.Error("nothing is counted in the next leadership")
	}
}
