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
			Help: "HTTP requests answered, by the pattern of their path and by status code; of streams, once they have ended.",
		}, []string{"route", "code"}),
	}
	s.all = append(s.all, r.total)
	r.seconds = s.histograms("http_request_seconds",
		"Time to answer an HTTP request, bodies included. Requests that wait by their nature (a watch, wait_ms) are not in it.", "route")
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
