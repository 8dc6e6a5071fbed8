package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/internal/certs"
)

// Security is the instruments of a process's connections.
type Security struct {
	insecure prometheus.Gauge
	expires  prometheus.Gauge
	failures prometheus.Gauge
}

func newSecurity(s *set) Security {
	return Security{
		insecure: s.gauge("insecure", "1 if this process may exchange data with other machines without TLS, because of --insecure."),
		expires:  s.gauge("certificate_expires_seconds", "Time until the certificate of this process ends, negative after its end; 0 without TLS."),
		failures: s.gauge("certificate_reload_failures", "Attempts of this process to read new certificates that failed; the old ones stay in use."),
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
