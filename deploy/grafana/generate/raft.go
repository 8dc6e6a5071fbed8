package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// raft answers whether the coordinators agree, and how fast.
func raft() row {
	return row{"Is Raft healthy?", append([]panel{
		{
			title: "Leaders", unit: units.Number, columns: 4, number: true, colours: []limit{{0, "red"}, {1, "green"}, {2, "orange"}},
			description: "Number of coordinators that lead. 1 is normal. 0: the cluster cannot commit anything. 2 for a moment: an old leader does not know yet that another leads.",
			queries:     []query{{`sum(coppice_leader)`, ""}},
		},
		{
			title: "Know the leader", unit: units.PercentUnit, columns: 4, number: true, colours: []limit{{0, "red"}, {1, "green"}},
			description: "Fraction of the coordinators that follow, or are, a leader with a quorum. `coppice cluster members --stale` asks each coordinator separately.",
			queries:     []query{{`avg(coppice_leader_known)`, ""}},
		},
		{
			title: "Voters", unit: units.Number, columns: 4, number: true,
			description: "Number of coordinators that vote. More than half of them must be up.",
			queries:     []query{{`max(coppice_raft_voters)`, ""}},
		},
		{
			title: "Coordinators that answer", unit: units.Number, columns: 4, number: true,
			description: "Number of coordinators that Prometheus could scrape.",
			queries:     []query{{`count(coppice_build_info{role="coordinator"})`, ""}},
		},
		{
			title: "Term", unit: units.Number, columns: 4, number: true,
			description: "The Raft term: the number of the last election.",
			queries:     []query{{`max(coppice_raft_term)`, ""}},
		},
		{
			title: "Elections in an hour", unit: units.Number, columns: 4, number: true, colours: []limit{{0, "green"}, {3, "orange"}, {10, "red"}},
			description: "Changes of the Raft term in the last hour. If there are many, a disk or the network is too slow for `--heartbeat`, or machines are overloaded.",
			queries:     []query{{`changes(max(coppice_raft_term)[1h:])`, ""}},
		},
	}, agreement()...)}
}

// agreement shows the log and its copies.
func agreement() []panel {
	return []panel{
		{
			title: "Time to commit", unit: units.Seconds, columns: 8,
			description: "Time from the proposal of a log entry until the entry is applied: for half of the entries, and for 99 of 100. The time depends on two disks and the network.",
			queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(coppice_raft_commit_seconds_bucket[$__rate_interval])))`, "half"},
				{`histogram_quantile(0.99, sum by (le) (rate(coppice_raft_commit_seconds_bucket[$__rate_interval])))`, "99 of 100"},
			},
		},
		{
			title: "Last contact with the leader", unit: units.Seconds, columns: 8,
			description: "Time since each coordinator last heard from the leader. Above the election timeout, a coordinator stands for election.",
			queries:     []query{each(`coppice_raft_last_contact_seconds{%s}`, "{{instance}}")},
		},
		{
			title: "Entries behind the leader", unit: units.Short, columns: 8,
			description: "Log entries that each coordinator still lacks, as the leader sees them. If the number only grows, the coordinator is down or its disk is too slow.",
			queries:     []query{{`max by (coordinator) (coppice_raft_peer_lag_entries)`, "{{coordinator}}"}},
		},
		{
			title: "Entries applied a second", unit: units.CountsPerSecond, columns: 8,
			description: "Log entries that each coordinator applies per second. All coordinators should have the same rate.",
			queries:     []query{each(`rate(coppice_raft_applied_index{%s}[$__rate_interval])`, "{{instance}}")},
		},
		{
			title: "Size of the log", unit: units.BytesIEC, columns: 8,
			description: "Size of the files of the Raft log on each disk, which are allocated ahead. Snapshots shorten the log: after a minute without much work it has at most 64 MiB. If the size only grows, the messages of the coordinator say why no snapshot could be written.",
			queries:     []query{each(`coppice_raft_log_bytes{%s}`, "{{instance}}")},
		},
		{
			title: "Who leads", unit: units.Number, columns: 8, top: 1,
			description: "1 while the coordinator leads and runs the jobs, else 0.",
			queries:     []query{each(`coppice_leader{%s}`, "{{instance}}")},
		},
	}
}
