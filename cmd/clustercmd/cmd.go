// Package clustercmd has the commands that run and manage a cluster: coordinators and workers, certificates, tokens,
// backups, audit records, and the contexts that name clusters.
package clustercmd

// Cmd has the commands for operators of a cluster.
type Cmd struct {
	Members  membersCmd  `cmd:"" help:"List the coordinators and the state of each."`
	Add      addCmd      `cmd:"" help:"Add a running coordinator to the cluster."`
	Remove   removeCmd   `cmd:"" help:"Remove a coordinator from the cluster, whether it is alive or dead."`
	Transfer transferCmd `cmd:"" help:"Transfer the leadership to another coordinator."`

	Show  clusterShowCmd  `cmd:"" default:"withargs" help:"Show the leader, the coordinators, the workers, and the quarantined workers."`
	Trust clusterTrustCmd `cmd:"" help:"Use a quarantined worker again."`
}
