package metrics

import "github.com/prometheus/client_golang/prometheus"

// Worker is the instruments of a worker.
type Worker struct {
	*set
	Traffic

	Units       prometheus.Counter
	UnitsFailed prometheus.Counter
	UnitSeconds *Kinds // by the Round's Kind
	Rows        prometheus.Counter
	Rounds      prometheus.Counter
	Needs       prometheus.Counter
	// OrdersDropped counts by reason: epoch, late, malformed.
	OrdersDropped *prometheus.CounterVec

	Slots     prometheus.Gauge
	Busy      prometheus.Gauge
	Jobs      prometheus.Gauge
	Epoch     prometheus.Gauge
	Connected prometheus.Gauge
	RoundTrip prometheus.Gauge // seconds; to the NATS server

	Shards       prometheus.Gauge
	CacheBytes   prometheus.Gauge
	BlobsFetched prometheus.Counter
	BlobsCorrupt prometheus.Counter
}

// NewWorker registers a worker's instruments.
func NewWorker(reg prometheus.Registerer) *Worker {
	s := &set{}
	m := &Worker{set: s, Traffic: newTraffic(s)}
	m.Units = s.counter("worker_units_total", "Units computed.")
	m.UnitsFailed = s.counter("worker_units_failed_total", "Units that could not be computed.")
	m.UnitSeconds = s.kinds("worker_unit_seconds", "Time to compute a unit, by kind: step, leaf update, validation, tree, fold and others. Of 16 kinds at most; the rest is kind=\"other\".")
	m.Rows = s.counter("worker_rows_total", "Rows of the data of these units; a mini-batch draws some of them.")
	m.Rounds = s.counter("worker_rounds_total", "Messages received that ask to compute units.")
	m.Needs = s.counter("worker_requests_total", "Requests to the leader for a job or parameters that the worker lacked.")
	m.OrdersDropped = s.counters("worker_messages_dropped_total",
		"Messages of a leader that were dropped, by reason: of an earlier epoch, late (of an earlier round), or malformed.",
		"reason", "epoch", "late", "malformed")
	m.Slots = s.gauge("worker_slots", "Units that this worker computes at once.")
	m.Busy = s.gauge("worker_busy_slots", "Units that this worker computes now, and threads that help with them.")
	m.Jobs = s.gauge("worker_jobs", "Jobs that this worker holds in memory.")
	m.Epoch = s.gauge("worker_epoch", "Highest epoch of a leader seen.")
	m.Connected = s.gauge("worker_connected", "1 while connected to NATS.")
	m.RoundTrip = s.gauge("worker_nats_round_trip_seconds", "Round trip to the NATS server, smoothed.")
	m.Shards = s.gauge("worker_shards", "Verified shards in the cache.")
	m.CacheBytes = s.gauge("worker_cache_bytes", "Bytes of the files in the cache.")
	m.BlobsFetched = s.counter("worker_blobs_fetched_total", "Blobs fetched from coordinators.")
	m.BlobsCorrupt = s.counter("worker_blobs_corrupt_total", "Files of the cache found corrupt by their digest and fetched again.")
	s.build("worker")
	reg.MustRegister(s)
	return m
}
