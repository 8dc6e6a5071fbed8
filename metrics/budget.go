package metrics

import "github.com/prometheus/client_golang/prometheus"

// Budget is the instruments of what others take of a coordinator's process.
type Budget struct {
	Connections       *prometheus.GaugeVec   // service: http, nats
	ConnectionsClosed *prometheus.CounterVec // service: http, nats
	Messages          *prometheus.GaugeVec   // bytes; part: sending, received
	MessagesDropped   prometheus.Counter
}

func newBudget(s *set) Budget {
	services := []string{"http", "nats"}
	return Budget{
		Connections:       s.gauges("connections", "Open connections of clients, by service.", "service", services...),
		ConnectionsClosed: s.counters("connections_closed_total", "Connections that were refused or closed because of a limit, by service. A NATS client that reads too slowly may count twice.", "service", services...),
		Messages:          s.gauges("message_memory_bytes", "Memory of messages: sending (messages that NATS clients have not read yet), received (incoming messages that are incomplete or not processed yet).", "part", "received", "sending"),
		MessagesDropped:   s.counter("messages_dropped_total", "Messages that were dropped because the memory for messages was full."),
	}
}
