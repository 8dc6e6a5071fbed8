package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// host shows the machines: disks, HTTP, backups and the processes themselves.
func host() row {
	return row{"The machines", append([]panel{
		{
			title: "Disk free", unit: units.PercentUnit, columns: 8, top: 1,
			description: "Free fraction of the disk with each coordinator's folder. Below 10 % an alert fires. A leader whose disk is full transfers the leadership.",
			queries:     []query{each(`coppice_disk_free_bytes{%[1]s} / coppice_disk_size_bytes{%[1]s}`, "{{instance}}")},
		},
		{
			title: "Blobs and caches", unit: units.BytesIEC, columns: 8,
			description: "Size of the blobs of each coordinator, and of the cache of each worker.",
			queries: []query{
				each(`coppice_blobs_bytes{%s}`, "{{instance}}"),
				each(`coppice_worker_cache_bytes{%s}`, "{{instance}}"),
			},
		},
		{
			title: "Time since the last backup", unit: units.Seconds, columns: 8,
			description: "Time since the last successful backup from any coordinator. No value: there was no backup in the last week.",
			queries:     []query{{`time() - max(max_over_time(coppice_backup_last_success_timestamp_seconds[7d]) > 0)`, "backup"}},
		},
		{
			title: "HTTP requests a second", unit: units.RequestsPerSecond, columns: 12,
			description: "Requests to all coordinators, by route and status code.",
			queries:     []query{{`sum by (route, code) (rate(coppice_http_requests_total[$__rate_interval]))`, "{{route}} {{code}}"}},
		},
		{
			title: "Slowest HTTP requests", unit: units.Seconds, columns: 12,
			description: "Time within which 99 of 100 requests to a route end. A request that watches a job lasts as long as it watches.",
			queries: []query{{
				`histogram_quantile(0.99, sum by (le, route) (rate(coppice_http_request_seconds_bucket[$__rate_interval])))`, "{{route}}",
			}},
		},
	}, processes()...)}
}

func processes() []panel {
	return []panel{
		{
			title: "Certificates end in", unit: units.Seconds, columns: 6,
			description: "Time until the certificate of each process ends. Below 14 days an alert fires. No value: the process has no TLS.",
			queries:     []query{each(`coppice_certificate_expires_seconds{%s} != 0`, "{{instance}}")},
		},
		{
			title: "Processor", unit: units.PercentUnit, columns: 6,
			description: "Processor time of each process; 100 % is one core.",
			queries:     []query{each(`rate(process_cpu_seconds_total{%s}[$__rate_interval])`, "{{instance}}")},
		},
		{
			title: "Memory", unit: units.BytesIEC, columns: 6,
			description: "Resident memory of each process.",
			queries:     []query{each(`process_resident_memory_bytes{%s}`, "{{instance}}")},
		},
		{
			title: "Goroutines", unit: units.Short, columns: 6,
			description: "Number of goroutines of each process. A number that only grows is a bug: please report it.",
			queries:     []query{each(`go_goroutines{%s}`, "{{instance}}")},
		},
	}
}
