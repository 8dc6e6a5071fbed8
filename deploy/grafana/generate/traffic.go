package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// traffic answers what a step costs on the network.
func traffic() row {
	return row{"How many bytes a step?", []panel{
		{
			title: "Bytes a step", unit: units.BytesIEC, columns: 8,
			description: "Payload that coordinators and workers publish to NATS, for each step. A step of structrf and rf is a tree. Blobs count, too: the value is higher in the first minute of a job, in which workers fetch shards.",
			queries: []query{{
				`sum(rate(coppice_nats_sent_bytes_total[$__rate_interval])) / (sum(rate(coppice_steps_total[$__rate_interval])) > 0)`, "sent",
			}, {
				`sum(rate(coppice_nats_received_bytes_total[$__rate_interval])) / (sum(rate(coppice_steps_total[$__rate_interval])) > 0)`, "delivered",
			}},
		},
		{
			title: "Bytes sent", unit: units.BytesPerSecondIEC, columns: 8,
			description: "Payload that each process publishes to NATS.",
			queries:     []query{each(`rate(coppice_nats_sent_bytes_total{%s}[$__rate_interval])`, "{{instance}}")},
		},
		{
			title: "Bytes delivered", unit: units.BytesPerSecondIEC, columns: 8,
			description: "Payload that NATS delivers to each process. A message that is published for all workers is delivered to each worker.",
			queries:     []query{each(`rate(coppice_nats_received_bytes_total{%s}[$__rate_interval])`, "{{instance}}")},
		},
		{
			title: "Connections lost", unit: units.CountsPerSecond, columns: 12,
			description: "Connections to NATS that were lost, and that were restored. If the number is always above zero, the network is unreliable.",
			queries: []query{
				each(`rate(coppice_nats_disconnects_total{%s}[$__rate_interval])`, "lost by {{instance}}"),
				each(`rate(coppice_nats_reconnects_total{%s}[$__rate_interval])`, "back at {{instance}}"),
			},
		},
		{
			title: "Blobs that workers fetch", unit: units.CountsPerSecond, columns: 12,
			description: "Shards and other blobs that workers fetch from coordinators, and corrupt files in the caches of workers. A corrupt file is fetched again; several corrupt files are a sign of a bad disk.",
			queries: []query{
				each(`rate(coppice_worker_blobs_fetched_total{%s}[$__rate_interval])`, "{{instance}}"),
				each(`rate(coppice_worker_blobs_corrupt_total{%s}[$__rate_interval])`, "corrupt at {{instance}}"),
			},
		},
	}}
}
