package planted

// SuiteBug is a bug of what the simulation has no model of, such as the NATS servers
// that coordinators embed: the chaos suite must find it, in a test of cmd/coppice.
type SuiteBug struct {
	Bug
	Test string
}

// SuiteBugs lists them.
var SuiteBugs = []SuiteBug{
	{Bug{"workers that stay with a leader that has lost the majority", []Edit{
		{"worker/follow.go", "	case c.Leader == \"\" || c.Epoch", "	case s.silent || c.Leader == \"\" || c.Epoch"},
		{"coordinator/coordinator.go", "	tasks.Go(func() { n.keepClients(ctx) })\n", ""},
	}}, "TestPartitions"},
}
