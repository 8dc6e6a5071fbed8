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
	// OrdersDropped counts by reason: leader_epoch, late, malformed.
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
	m.Units = s.counter("worker_tasks_total", "Tasks computed.")
	m.UnitsFailed = s.counter("worker_tasks_failed_total", "Tasks that could not be computed.")
	m.UnitSeconds = s.kinds("worker_task_seconds", "Time to compute a task, by kind: step, leaf update, validation, tree, fold and others. Of 16 kinds at most; the rest is kind=\"other\".")
	m.Rows = s.counter("worker_samples_total", "Samples of the data of these tasks; a mini-batch draws some of them.")
	m.Rounds = s.counter("worker_rounds_total", "Messages received that ask to compute tasks.")
	m.Needs = s.counter("worker_requests_total", "Requests to the leader for a job or parameters that the worker lacked.")
	m.OrdersDropped = s.counters("worker_messages_dropped_total",
		"Messages of a leader that were dropped, by reason: leader_epoch (of an earlier leader), late (of an earlier round), or malformed.",
		"reason", "leader_epoch", "late", "malformed")
	m.Slots = s.gauge("worker_slots", "Tasks that this worker computes at once.")
	m.Busy = s.gauge("worker_busy_slots", "Tasks that this worker computes now, and threads that help with them.")
	m.Jobs = s.gauge("worker_jobs", "Jobs that this worker holds in memory.")
	m.Epoch = s.gauge("worker_leader_epoch", "Highest leader epoch seen.")
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
