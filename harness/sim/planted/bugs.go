// Package planted lists bugs that the simulation must find, or, where its stand-in
// for Raft cannot show them, a test of the real one. It also lists checks of identities and
// rights to switch off. Both are changes to the source of the
// production packages, which its test builds in with go test -overlay, so that
// production code holds no hooks for them.
package planted

// Bug is a mistake to plant.
type Bug struct {
	Name  string
	Edits []Edit
	Test  *Test // what finds it; nil: the simulation
}

// Test is a test of real Raft, real disks or real processes.
type Test struct {
	Package string // from the module's root
	Name    string
}

// Edit replaces Old, which File holds exactly once, by New.
type Edit struct {
	File     string // from the module's root
	Old, New string
}

// Bugs lists what is planted, one at a time.
var Bugs = []Bug{
	{"a sum in the order of arrival", []Edit{
		{"engine/tree.go", "	tasks  int\n	shape  round.Shape\n",
			"	tasks  int\n	shape  round.Shape\n	came   []round.Partial\n"},
		{"engine/tree.go", "	t.tasks, t.shape = tasks, shape\n", "	t.tasks, t.shape, t.came = tasks, shape, nil\n"},
		{"engine/tree.go", "	t.levels[level][i] = p\n	t.climb(level, i)\n",
			`	t.came = append(t.came, round.Partial{F64: append([]float64(nil), p.F64...), F32: append([]float32(nil), p.F32...)})
	t.levels[level][i] = p
	t.climb(level, i)
	if root := t.Root(); root != nil {
		clear(root.F64)
		clear(root.F32)
		for _, p := range t.came {
			num.Add64(root.F64, p.F64)
			num.Add32(root.F32, p.F32)
		}
	}
`},
	}, nil},
	{"a unit counted twice", []Edit{
		{"engine/schedule/reduce.go", "needed, known := false,", "needed, known := true,"},
		{"engine/tree.go", "		if t.levels[l][j] != nil {\n			t.Release(p)\n			return false, nil\n		}\n",
			`		if at := t.levels[l][j]; at != nil {
			num.Add64(at.F64, p.F64)
			num.Add32(at.F32, p.F32)
			return true, nil
		}
`},
	}, nil},
	{"a blob acknowledged before it is synced", []Edit{
		{"internal/blobs/folder.go", "&Folder{dir: dir, sync: true,", "&Folder{dir: dir, sync: false,"},
	}, nil},
	{"a blob referenced before a majority has it", []Edit{
		{"coordinator/replica/replica.go", "need := (len(voters) + 1) / 2", "need := 0 * len(voters)"},
	}, nil},
	{"the epoch not checked by the state machine", []Edit{
		{"coordinator/state/state.go", "if epoch != l.epoch || epoch == 0 {", "if epoch == 0 {"},
	}, nil},
	{"the epoch not checked by workers", []Edit{
		{"worker/batch/machine.go", "	if epoch < m.epoch {", "	if epoch == 0 {"},
	}, nil},
	{"a retry after a restore with another round's number", []Edit{
		{"coordinator/jobs/driver.go", "engine.Drive(ctx, d.trainer, d.job.Round, x,",
			"engine.Drive(ctx, d.trainer, d.job.Round+min(d.job.Round, 1), x,"},
	}, nil},
	{"a restore that forgets the state", []Edit{
		{"coordinator/jobs/driver.go", "	committed, job := d.job.Trainer, d.job.Job\n",
			"	committed, job := []byte(nil), d.job.Job\n"},
	}, nil},
	{"a stale round's partial accepted", []Edit{
		{"engine/schedule/reduce.go", "	if e.Round != r.number || !r.workers.Trusts(e.Worker) {",
			"	if !r.workers.Trusts(e.Worker) {"},
	}, nil},
	{"a stale round's part accepted", []Edit{
		{"engine/schedule/gather.go", "	if e.Round != g.number {\n		g.drop(Stale)\n		g.count(",
			"	if e.Task >= len(g.tasks) {\n		g.drop(Stale)\n		g.count("},
		{"coordinator/jobs/commit.go", "Job: c.Job, Round: c.Round + 1, Task: c.Task,",
			"Job: c.Job, Round: r.Store.State().Job(c.Job).Round + 1, Task: c.Task,"},
		{"coordinator/jobs/commit.go", "j != nil && j.Round > c.Round {", "j != nil && false {"},
	}, nil},
	{"a cancelled job that publishes its model", []Edit{
		{"coordinator/state/run.go", `func finish(s *State, e *protocol.FinishEntry) (any, error) {
	j, err := s.running(e.Epoch, e.Job)
	if err != nil {
		return nil, err
	}
`, `func finish(s *State, e *protocol.FinishEntry) (any, error) {
	j := s.Job(e.Job)
	if j == nil || e.Epoch != s.epoch {
		return nil, ErrNotFound
	}
`},
	}, nil},
	{"a part recorded under the wrong unit", []Edit{
		{"coordinator/jobs/commit.go", "Round: c.Round + 1, Task: c.Task, Of: uint32(of),",
			"Round: c.Round + 1, Task: (c.Task + 1) % uint32(of), Of: uint32(of),"},
	}, nil},
	{"a collected round folded before its last part", []Edit{
		{"engine/schedule/gather.go", "	case g.open > 0:", "	case g.open > 1:"},
	}, nil},
	{"a submission's token not looked at", []Edit{
		{"coordinator/state/jobs.go", "	if j := s.JobByToken(e.Token); j != nil {",
			"	if j := s.JobByToken(e.Token); j != nil && e.Token == \"\" {"},
	}, nil},
	{"the token of a deleted job forgotten", []Edit{
		{"coordinator/state/jobs.go", "	if d := s.DeletedByToken(e.Token); d != nil {",
			"	if d := s.DeletedByToken(e.Token); d != nil && e.Token == \"\" {"},
	}, nil},
	{"a snapshot without the deleted jobs", []Edit{
		{"coordinator/state/state.go", "		s.deleted = appended(c, \"deleted jobs\", s.deleted, d, deletedID, MaxDeleted)\n",
			""},
	}, nil},
	{"a snapshot without the collected parts", []Edit{
		{"coordinator/state/state.go", "	j.summary = summarize(j.Outcome)\n",
			"	j.summary, j.gathered = summarize(j.Outcome), recordedList{}\n"},
	}, nil},
	{"the cells of a cancelled job forgotten", []Edit{
		{"coordinator/state/job.go", "	if as == protocol.Done || j.Job.Cells == nil {",
			"	if as != protocol.Failed || j.Job.Cells == nil {"},
	}, nil},
	{"recorded cells that the next leader has computed again", []Edit{
		{"coordinator/jobs/commit.go", "			if !r.lost.Contains(p.Digest) {",
			"			if !r.lost.Contains(p.Digest) && j.Job.Cells == nil {"},
	}, nil},
	{"a snapshot without the cells that a budget left out", []Edit{
		{"coordinator/state/recorded.go", "		l.push(p)\n", "		if p.WasRun() {\n			l.push(p)\n		}\n"},
	}, nil},
	{"another cell taken for one that a budget left out", []Edit{
		{"coordinator/state/run.go", "RecordedResult{Round: e.Round, Task: u, Of: of, Compute: e.Compute}",
			"RecordedResult{Round: e.Round, Task: (u + 1) % of, Of: of, Compute: e.Compute}"},
	}, nil},
	{"cells stored in another's place", []Edit{
		{"coordinator/jobs/driver.go", "		part, model, err := d.runOutcome(ctx, o, run)\n",
			"		part, model, err := d.runOutcome(ctx, o, (run+1)%o.CellCount)\n"},
	}, nil},
	{"a value of another version", []Edit{
		{"worker/batch/tasks.go", "		if y.Number == ref.Version {\n			return y\n		}\n",
			"		if y.Number+1 >= ref.Version {\n			return y\n		}\n"},
	}, nil},
	{"a leader's commits lost with its office", []Edit{
		{"coordinator/state/state.go", "	s.dropPending() // only the leader that began to send a training state could " +
			"complete it\n", "	s.dropPending()\n	for i, j := range s.jobs {\n		if j.Round > 0 && !j.State.Final() {\n			next " +
			":= *j\n			next.Round, next.Trainer = 0, nil\n			s.jobs = replaced(s.jobs, i, &next)\n		}\n	}\n"},
	}, nil},
	{"a curve that begins anew with each leader", []Edit{
		{"coordinator/jobs/driver.go", "	if len(d.job.Curve) > 0 {", "	if len(d.job.Curve) > 1<<30 {"},
		{"engine/outcome/curve/curve.go", "	c.coarsen(next.stride, next.validationStride)\n", "	c.points = nil\n"},
	}, nil},
	{"a part folded in another's place", []Edit{
		{"coordinator/dispatch/results.go", "		s.bytes[a.Task] = s", "		s.bytes[(a.Task+1)%len(s.bytes)] = s"},
	}, nil},
	{"an emptied folder that keeps its identity", []Edit{
		{"coordinator/store/folder.go", "Directory: NewID()}, true", "Directory: \"0\"}, true"},
	}, &Test{"./coordinator/store", "TestForgottenFolderDoesNotVote"}},
	{"a log that is missing taken for a new one", []Edit{
		{"coordinator/store/node.go", "	if max(last, base) > 0 || checked || term == 0 || term == 1 && len(i.Founders) > 0 {",
			"	if max(last, base) > 0 || checked || term <= 1 || len(i.Founders) > 0 {"},
	}, &Test{"./coordinator/store", "TestForgottenFolderDoesNotVote"}},
	{"a cluster that begins without one of its peers", []Edit{
		{"coordinator/store/begin.go", "			first = \"\"\n", "			continue\n"},
	}, &Test{"./coordinator/store", "TestDecide"}},
	{"a first start that is not confirmed", []Edit{
		{"coordinator/store/begin.go", "	case d.from != \"\" && !f.confirmed(ctx, d):", "	case d.from == \"nobody\":"},
	}, &Test{"./coordinator/store", "TestEmptiedWhileOthersBegin"}},
	{"a server of another cluster that is welcome", []Edit{
		{"coordinator/store/handshake.go", "	welcome := found.cluster == g.self.cluster && to == g.self.server && " +
			"found.server != g.self.server\n", "	welcome := len(to) > 0\n"},
	}, &Test{"./coordinator/store", "TestGreetingIsBounded"}},
	{"workers that stay with a leader that has lost the majority", []Edit{
		{"worker/coordinators.go", "	case c.Leader == \"\" || c.Epoch", "	case s.silent || c.Leader == \"\" || c.Epoch"},
		{"coordinator/coordinator.go", "	tasks.Go(func() { n.nats.divertClients(ctx, n.leader) })\n", ""},
	}, &Test{"./harness/chaos", "TestPartitions"}},
	{"a worker that stays with a leader of an earlier epoch", []Edit{
		{"worker/coordinators.go", "	case c.Leader == \"\" || c.Epoch", "	case s.silent || c.Leader == \"\" || c.Epoch"},
	}, &Test{"./worker", "TestFollowsTheMajority"}},
	{"a coordinator that is cut off and keeps its clients", []Edit{
		{"coordinator/coordinator.go", "	tasks.Go(func() { n.nats.divertClients(ctx, n.leader) })\n", ""},
	}, &Test{"./coordinator", "TestSendsClientsAway"}},
}

// Holes lists checks of identities and rights that are switched off, one at a time. The
// suites of hostile callers must find each.
var Holes = []Bug{
	{"roles are not checked on HTTP", []Edit{
		{"protocol/access/grant.go", "	case g.access == rights.None:\n", "	case g == nil:\n"},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"callers without an identity are admins", []Edit{
		{"protocol/access/access.go", "	case known == nil || !page:\n		return Caller{}, g.unknown()\n",
			"	case known == nil || !page:\n		return Caller{Role: rights.Admin}, nil\n"},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"the body of readyz is for everybody", []Edit{
		{"protocol/access/grant.go", "	case g.access == rights.Status:\n", "	case g == nil:\n"},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"workers read the cluster of the leader", []Edit{
		{"protocol/access/grant.go", "	case g.access == rights.Local && ", "	case g == nil && "},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"the certificates of HTTP are not verified", []Edit{
		{"internal/certs/source.go", "		if err != nil {\n			if refused.Err",
			"		if err != nil && id.Name == \"\" {\n			if refused.Err"},
	}, &Test{"./protocol/access", "TestRoles"}},
	{"everybody forwards requests", []Edit{
		{"protocol/access/access.go", "	if c.Role != rights.Coordinator {\n", "	if c.Role == \"\" {\n"},
	}, &Test{"./protocol/access", "TestForwarded"}},
	{"a follower decides the role of a token", []Edit{
		{"protocol/access/access.go", "		c.Role, c.Name = token.Role, token.Owner\n", ""},
	}, &Test{"./protocol/access", "TestForwarded"}},
	{"a token without its secret", []Edit{
		{"protocol/access/session.go", "t.Hash[:]) == 1\n", "t.Hash[:]) >= 0\n"},
	}, &Test{"./protocol/access", "TestTokens"}},
	{"a token that never expires", []Edit{
		{"protocol/access/access.go", "!t.Ends.IsZero() && time.Now().After(t.Ends)",
			"t.Ends.IsZero() && time.Now().IsZero()"},
	}, &Test{"./protocol/access", "TestTokens"}},
	{"a revoked certificate", []Edit{
		{"protocol/access/access.go", "	case errors.Is(refused, certs.ErrRevoked), refused == nil && known != nil && " +
			"known.Revoked(peer.Serial):\n", "	case known == nil && peer.Serial == \"\":\n"},
	}, &Test{"./protocol/access", "TestRevoked"}},
	{"requests of a token that was revoked meanwhile", []Edit{
		{"protocol/access/access.go", "		if err := g.check(r, c); err != nil {\n",
			"		if err := g.check(r, c); err != nil && r == nil {\n"},
	}, &Test{"./coordinator", "TestRevokedToken"}},
	{"connections of a revoked certificate stay", []Edit{
		{"internal/certs/source.go", "		if err == nil {\n			continue\n",
			"		if err == nil || errors.Is(err, ErrRevoked) {\n			continue\n"},
	}, &Test{"./coordinator", "TestRevokedWorker"}},
	{"a revoked certificate connects again", []Edit{
		{"internal/certs/source.go", "			return err\n		}\n	}\n	return c\n",
			"			if errors.Is(err, ErrRevoked) {\n				return nil\n			}\n			return err\n		}\n	}\n	return c\n"},
	}, &Test{"./coordinator", "TestRevokedWorker"}},
	{"connections of an authority that was taken away stay", []Edit{
		{"internal/certs/source.go", "t == nil || t.by != m || ", "t == nil || "},
	}, &Test{"./coordinator", "TestTrustIsTakenAway"}},
	{"a coordinator that was removed keeps its certificate", []Edit{
		{"coordinator/members/members.go", "	if s.Certificates == nil {\n", "	if s.Certificates != nil {\n"},
	}, &Test{"./coordinator", "TestTrustIsTakenAway"}},
	{"connections of an expired certificate stay", []Edit{
		{"internal/certs/source.go", "		if err == nil {\n			continue\n",
			"		if err == nil || errors.Is(err, ErrExpired) {\n			continue\n"},
		{"protocol/bus/server.go", "	user := &natsserver.User{ConnectionDeadline: end}\n", "	user := new(natsserver.User)\n"},
	}, &Test{"./coordinator", "TestExpiredWorker"}},
	{"a Raft server under another name", []Edit{
		{"coordinator/store/handshake.go", "	if !secure || parseServer(raft.ServerID(found.server), \"\").ID == name {\n",
			"	if !secure || parseServer(raft.ServerID(found.server), \"\").ID != \"\" {\n"},
	}, &Test{"./coordinator/store", "TestGreetingNamesTheCertificate"}},
	{"blobs of others by their digests", []Edit{
		{"coordinator/api/datasets.go", "	if access.Reads(ctx, protocol.Ownership{Private: true}) { ",
			"	if len(list) < 100 { "},
	}, &Test{"./coordinator", "TestDigestsGrantNothing"}},
	{"models of others", []Edit{
		{"coordinator/api/results.go", "		if !access.Reads(r.Context(), m.Ownership) { ", "		if m.Name == \"\" { "},
	}, &Test{"./coordinator", "TestPrivate"}},
	{"a process that has the name of a user", []Edit{
		{"protocol/access/grant.go", "g.Name == of.Owner && slices.Contains(rights.Users, g.Role)", "g.Name == of.Owner"},
	}, &Test{"./protocol/access", "TestRead"}},
	{"jobs of others", []Edit{
		{"protocol/access/grant.go", "	if !ok || g.Role != rights.Admin && (", "	if !ok || g.Role == rights.Anonymous && ("},
	}, &Test{"./protocol/access", "TestOwn"}},
	{"an owner that nobody asks for", []Edit{
		{"protocol/access/grant.go", "g.access == rights.Own && g.settled", "g.access == rights.Own"},
	}, &Test{"./protocol/access", "TestSettled"}},
	{"a certificate of another authority", []Edit{
		{"internal/certs/source.go", "		if err != nil {\n			if refused.Err",
			"		if err != nil && len(p.roles) == 0 {\n			if refused.Err"},
	}, &Test{"./coordinator", "TestCertificatesOfOthers"}},
	{"a certificate of another cluster", []Edit{
		{"internal/certs/source.go", "refused.Fits = id.Cluster == m.id.Cluster && ", "refused.Fits = "},
	}, &Test{"./coordinator", "TestCertificatesOfOthers"}},
	{"a certificate of another role", []Edit{
		{"internal/certs/source.go", " && slices.Contains(p.roles, id.Role); !refused.Fits {\n",
			" && slices.Contains(Every, id.Role); !refused.Fits {\n"},
	}, &Test{"./coordinator", "TestCertificatesOfOthers"}},
	{"TLS 1.2", []Edit{
		{"internal/certs/source.go", "		MinVersion: tls.VersionTLS13,\n", "		MinVersion: tls.VersionTLS12,\n"},
	}, &Test{"./coordinator", "TestCertificatesOfOthers"}},
	{"an address that others reach, in the clear", []Edit{
		{"internal/certs/listen.go", "!ok || !tcp.IP.IsLoopback()", "!ok || tcp.IP == nil"},
	}, &Test{"./coordinator", "TestExposed"}},
	{"a worker under another name", []Edit{
		{"protocol/bus/server.go", "		return client == id.Name\n", "		return client != \"\"\n"},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"a member of no pool", []Edit{
		{"protocol/bus/server.go", "		return strings.HasPrefix(client, id.Name+\"-\")\n",
			"		return strings.HasPrefix(client, id.Name)\n"},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"every subject for everybody", []Edit{
		{"protocol/bus/server.go", "	if a.rights != nil {\n", "	if a.rights != nil && id.Name == \"\" {\n"},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"the subjects of all workers", []Edit{
		{"protocol/rights/rights.go", "Subscribe: []string{s.Lead(), s.Work(name), ",
			"Subscribe: []string{s.Lead(), s.Work(all), "},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"a heartbeat for another worker", []Edit{
		{"coordinator/dispatch/dispatch.go", "sender != b.Worker {", "sender == \"\" {"},
	}, &Test{"./coordinator/dispatch", "TestForeignMessages"}},
	{"an answer to another's inbox", []Edit{
		{"protocol/names.go", "func (s Subjects) MayAnswer(subject, reply string) bool {\n",
			"func (s Subjects) MayAnswer(subject, reply string) bool {\n	if reply != \"\" {\n		return true\n	}\n"},
	}, &Test{"./protocol", "TestMayAnswer"}},
	{"results in the name of others", []Edit{
		{"protocol/rights/rights.go", "s.AllResults(all, name), ", "s.AllResults(all, all), "},
	}, &Test{"./coordinator", "TestHostileNATS"}},
}
