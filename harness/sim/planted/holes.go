package planted

// Holes lists checks of identities and rights that are switched off, one at a time. The
// suites of hostile callers must find each.
var Holes = []Bug{
	{"roles are not checked on HTTP", []Edit{
		{"protocol/access/access.go", "	case g.access == rights.None:\n", "	case g == nil:\n"},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"callers without an identity are admins", []Edit{
		{"protocol/access/access.go", "	if r.Header.Get(\"Authorization\") == \"\" || g.Registry == nil {\n		return Caller{}, g.unknown()\n", "	if r.Header.Get(\"Authorization\") == \"\" || g.Registry == nil {\n		return Caller{Role: rights.Admin}, nil\n"},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"the body of readyz is for everybody", []Edit{
		{"protocol/access/access.go", "	case g.access == rights.Status:\n", "	case g == nil:\n"},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"workers read the cluster of the leader", []Edit{
		{"protocol/access/access.go", "	case g.access == rights.Local && ", "	case g == nil && "},
	}, &Test{"./coordinator", "TestHostileHTTP"}},
	{"the certificates of HTTP are not verified", []Edit{
		{"internal/certs/source.go", "		if err != nil {\n			if refused.Err", "		if err != nil && id.Name == \"\" {\n			if refused.Err"},
	}, &Test{"./protocol/access", "TestRoles"}},
	{"everybody forwards requests", []Edit{
		{"protocol/access/access.go", "	if c.Role != rights.Coordinator {\n", "	if c.Role == \"\" {\n"},
	}, &Test{"./protocol/access", "TestForwarded"}},
	{"a follower decides the role of a token", []Edit{
		{"protocol/access/access.go", "		c.Role, c.Name = token.Role, token.Owner\n", ""},
	}, &Test{"./protocol/access", "TestForwarded"}},
	{"a token without its secret", []Edit{
		{"protocol/access/access.go", "token.Hash[:]) == 1\n", "token.Hash[:]) >= 0\n"},
	}, &Test{"./protocol/access", "TestTokens"}},
	{"a token that never expires", []Edit{
		{"protocol/access/access.go", "!t.Ends.IsZero() && time.Now().After(t.Ends)", "t.Ends.IsZero() && time.Now().IsZero()"},
	}, &Test{"./protocol/access", "TestTokens"}},
	{"a revoked certificate", []Edit{
		{"protocol/access/access.go", "	case errors.Is(refused, certs.ErrRevoked), refused == nil && known != nil && known.Revoked(peer.Serial):\n", "	case known == nil && peer.Serial == \"\":\n"},
	}, &Test{"./protocol/access", "TestRevoked"}},
	{"requests of a token that was revoked meanwhile", []Edit{
		{"protocol/access/access.go", "		if err := g.check(r, c); err != nil {\n", "		if err := g.check(r, c); err != nil && r == nil {\n"},
	}, &Test{"./coordinator", "TestRevokedToken"}},
	{"connections of a revoked certificate stay", []Edit{
		{"internal/certs/source.go", "		if err == nil {\n			continue\n", "		if err == nil || errors.Is(err, ErrRevoked) {\n			continue\n"},
	}, &Test{"./coordinator", "TestRevokedWorker"}},
	{"a revoked certificate connects again", []Edit{
		{"internal/certs/source.go", "			return err\n		}\n	}\n	return c\n", "			if errors.Is(err, ErrRevoked) {\n				return nil\n			}\n			return err\n		}\n	}\n	return c\n"},
	}, &Test{"./coordinator", "TestRevokedWorker"}},
	{"connections of an authority that was taken away stay", []Edit{
		{"internal/certs/source.go", "t == nil || t.by != m || ", "t == nil || "},
	}, &Test{"./coordinator", "TestTrustIsTakenAway"}},
	{"a coordinator that was removed keeps its certificate", []Edit{
		{"coordinator/members/members.go", "	if s.Certificates == nil {\n", "	if s.Certificates != nil {\n"},
	}, &Test{"./coordinator", "TestTrustIsTakenAway"}},
	{"connections of an expired certificate stay", []Edit{
		{"internal/certs/source.go", "		if err == nil {\n			continue\n", "		if err == nil || errors.Is(err, ErrExpired) {\n			continue\n"},
		{"protocol/bus/server.go", "	user := &natsserver.User{ConnectionDeadline: end}\n", "	user := new(natsserver.User)\n"},
	}, &Test{"./coordinator", "TestExpiredWorker"}},
	{"a Raft server under another name", []Edit{
		{"coordinator/store/handshake.go", "	if !secure || parseServer(raft.ServerID(found.server), \"\").ID == name {\n", "	if !secure || parseServer(raft.ServerID(found.server), \"\").ID != \"\" {\n"},
	}, &Test{"./coordinator/store", "TestGreetingNamesTheCertificate"}},
	{"blobs of others by their digests", []Edit{
		{"coordinator/api/datasets.go", "	if access.Reads(ctx, protocol.Ownership{Private: true}) { ", "	if len(list) < 100 { "},
	}, &Test{"./coordinator", "TestDigestsGrantNothing"}},
	{"models of others", []Edit{
		{"coordinator/api/results.go", "		if !access.Reads(r.Context(), m.Ownership) { ", "		if m.Name == \"\" { "},
	}, &Test{"./coordinator", "TestPrivate"}},
	{"a process that has the name of a user", []Edit{
		{"protocol/access/access.go", "g.Name == of.Owner && slices.Contains(rights.Users, g.Role)", "g.Name == of.Owner"},
	}, &Test{"./protocol/access", "TestRead"}},
	{"jobs of others", []Edit{
		{"protocol/access/access.go", "	if !ok || g.Role != rights.Admin && (", "	if !ok || g.Role == rights.Anonymous && ("},
	}, &Test{"./protocol/access", "TestOwn"}},
	{"an owner that nobody asks for", []Edit{
		{"protocol/access/access.go", "g.access == rights.Own && g.settled", "g.access == rights.Own"},
	}, &Test{"./protocol/access", "TestSettled"}},
	{"a certificate of another authority", []Edit{
		{"internal/certs/source.go", "		if err != nil {\n			if refused.Err", "		if err != nil && len(p.roles) == 0 {\n			if refused.Err"},
	}, &Test{"./coordinator", "TestCertificatesOfOthers"}},
	{"a certificate of another cluster", []Edit{
		{"internal/certs/source.go", "refused.Fits = id.Cluster == m.id.Cluster && ", "refused.Fits = "},
	}, &Test{"./coordinator", "TestCertificatesOfOthers"}},
	{"a certificate of another role", []Edit{
		{"internal/certs/source.go", " && slices.Contains(p.roles, id.Role); !refused.Fits {\n", " && slices.Contains(Every, id.Role); !refused.Fits {\n"},
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
		{"protocol/bus/server.go", "		return strings.HasPrefix(client, id.Name+\"-\")\n", "		return strings.HasPrefix(client, id.Name)\n"},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"every subject for everybody", []Edit{
		{"protocol/bus/server.go", "	if a.rights != nil {\n", "	if a.rights != nil && id.Name == \"\" {\n"},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"the subjects of all workers", []Edit{
		{"protocol/rights/rights.go", "Subscribe: []string{s.Lead(), s.Work(name), ", "Subscribe: []string{s.Lead(), s.Work(all), "},
	}, &Test{"./coordinator", "TestHostileNATS"}},
	{"a heartbeat for another worker", []Edit{
		{"coordinator/dispatch/dispatch.go", "sender != b.Worker {", "sender == \"\" {"},
	}, &Test{"./coordinator/dispatch", "TestForeignMessages"}},
	{"an answer to another's inbox", []Edit{
		{"protocol/names.go", "func (s Subjects) MayAnswer(subject, reply string) bool {\n", "func (s Subjects) MayAnswer(subject, reply string) bool {\n	if reply != \"\" {\n		return true\n	}\n"},
	}, &Test{"./protocol", "TestMayAnswer"}},
	{"results in the name of others", []Edit{
		{"protocol/rights/rights.go", "s.AllResults(all, name), ", "s.AllResults(all, all), "},
	}, &Test{"./coordinator", "TestHostileNATS"}},
}
