// Package metrics defines every Prometheus instrument of Coppice, once:
// NewCoordinator and NewWorker register them with a registry of the caller's, and
// nothing is global. METRICS.md lists what they mean; a test holds it complete.
//
// Names begin with coppice_; tasks are seconds and bytes; counters end in _total.
package metrics

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/version"
)

// namespace begins every name.
const namespace = "coppice"

// durations are the buckets of durations, in seconds: 50 µs to 26 s.
var durations = prometheus.ExponentialBuckets(50e-6, 2, 20)

// longDurations are those of tasks, which may be whole trees and folds: to 2 h.
var longDurations = append(prometheus.ExponentialBuckets(50e-6, 2, 20), 60, 120, 300, 600, 1200, 3600, 7200)

// set is the instruments of one process: one collector, so that gauges can be
// brought up to date before they are read.
type set struct {
	mu     sync.Mutex
	before func()
	all    []prometheus.Collector
}

// Describe implements prometheus.Collector.
func (s *set) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.all {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (s *set) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		s.before()
	}
	for _, c := range s.all {
		c.Collect(ch)
	}
}

// OnScrape has f called before each reading of the instruments, to set gauges
// that are cheaper to read off then than to keep. nil ends it. One call runs at
// a time, and none when OnScrape has returned.
func (s *set) OnScrape(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *set) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	s.all = append(s.all, c)
	return c
}

func (s *set) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	s.all = append(s.all, g)
	return g
}

func (s *set) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: durations,
	})
	s.all = append(s.all, h)
	return h
}

// histograms makes a histogram for each value of a label.
func (s *set) histograms(name, help, label string, buckets []float64) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets,
	}, []string{label})
	s.all = append(s.all, v)
	return v
}

// gauges makes a gauge for each value of a label; values that are listed exist
// from the start, at zero.
func (s *set) gauges(name, help, label string, values ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
	for _, value := range values {
		v.WithLabelValues(value)
	}
	s.all = append(s.all, v)
	return v
}

// counters makes a counter for each listed value of a label.
func (s *set) counters(name, help, label string, values ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
	for _, value := range values {
		v.WithLabelValues(value)
	}
	s.all = append(s.all, v)
	return v
}

// build registers what this process is.
func (s *set) build(role string) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info",
		Help:        "Always 1; the labels name the build, and the kind of process (coordinator or worker).",
		ConstLabels: prometheus.Labels{"version": version.String, "role": role, "goversion": runtime.Version()},
	})
	g.Set(1)
	s.all = append(s.all, g)
}

// Traffic is the instruments of a NATS connection; it is a bus.Traffic.
type Traffic struct {
	NATSSent        prometheus.Counter // bytes
	NATSReceived    prometheus.Counter // bytes
	NATSReconnects  prometheus.Counter
	NATSDisconnects prometheus.Counter
}

func newTraffic(s *set) Traffic {
	return Traffic{
		NATSSent:        s.counter("nats_sent_bytes_total", "Bytes of payload published to NATS."),
		NATSReceived:    s.counter("nats_received_bytes_total", "Bytes of payload delivered by NATS."),
		NATSReconnects:  s.counter("nats_reconnects_total", "Reconnections to NATS."),
		NATSDisconnects: s.counter("nats_disconnects_total", "Lost connections to NATS."),
	}
}

// Sent counts n bytes published.
func (t *Traffic) Sent(n int) { t.NATSSent.Add(float64(n)) }

// Received counts n bytes delivered.
func (t *Traffic) Received(n int) { t.NATSReceived.Add(float64(n)) }

// Reconnected counts a connection that came back.
func (t *Traffic) Reconnected() { t.NATSReconnects.Inc() }

// Disconnected counts a connection that was lost.
func (t *Traffic) Disconnected() { t.NATSDisconnects.Inc() }

// Registry makes a registry with the collectors of the process and of the Go
// runtime.
func Registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(),
	)
	return reg
}

// Handler serves /metrics of a registry, as OpenMetrics to a client that accepts it.
func Handler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg, EnableOpenMetrics: true})
}

// Security is the instruments of a process's connections.
type Security struct {
	insecure prometheus.Gauge
	expires  prometheus.Gauge
	failures prometheus.Gauge
}

func newSecurity(s *set) Security {
	return Security{
		insecure: s.gauge("insecure", "1 if this process may exchange data with other machines without TLS, because of "+
			"--insecure."),
		expires: s.gauge("certificate_expires_seconds",
			"Time until the certificate of this process ends, negative after its end; 0 without TLS."),
		failures: s.gauge("certificate_reload_failures",
			"Attempts of this process to read new certificates that failed; the old ones stay in use."),
	}
}

// ObserveSecurity sets the gauges. source is nil without TLS.
func (m *Security) ObserveSecurity(insecure bool, source *certs.Source) {
	m.insecure.Set(0)
	if insecure {
		m.insecure.Set(1)
	}
	if source != nil {
		m.expires.Set(time.Until(source.Expires()).Seconds())
		m.failures.Set(float64(source.Failures()))
	}
}
