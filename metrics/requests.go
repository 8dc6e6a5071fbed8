package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests counts HTTP requests by route: the pattern that a path matched, never the
// path itself.
type Requests struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func (s *set) requests() *Requests {
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "http_requests_total",
			Help: "Answered HTTP requests, by path pattern and status code. A stream counts when it ends.",
		}, []string{"route", "code"}),
	}
	s.all = append(s.all, r.total)
	r.seconds = s.histograms("http_request_seconds",
		"Time to answer an HTTP request, including bodies. Requests that wait by design (a stream of changes, wait_ms) are not counted.", "route")
	return r
}

// Add counts a request that was answered with a status code after some time; waits:
// how long it took says nothing.
func (r *Requests) Add(route string, code int, took time.Duration, waits bool) {
	r.total.WithLabelValues(route, strconv.Itoa(code)).Inc()
	if !waits {
		r.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}
