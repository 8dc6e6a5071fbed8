package protocol

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxName is the greatest length, in bytes, of a job's or dataset's name.
const MaxName = 100

// CheckName reports why text cannot name a job or a dataset: it stands in URLs and file
// names. Names are 1 to MaxName letters, digits, '.', '_' and '-', and begin with a
// letter or digit. A name of digits only would read as a job's number.
func CheckName(text string) error {
	if text == "" || len(text) > MaxName {
		return fmt.Errorf("want a name of 1 to %d characters, got %d", MaxName, len(text))
	}
	digits := true
	for i, r := range text {
		digit := r >= '0' && r <= '9'
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digits = digits && digit
		switch {
		case digit || letter:
		case i == 0:
			return errors.New("a name must begin with a letter or digit")
		case r != '.' && r != '_' && r != '-':
			return fmt.Errorf("a name can have only letters, digits, '.', '_' and '-', not %q", r)
		}
	}
	if digits {
		return errors.New("a name cannot have only digits, because it would look like the number of a job")
	}
	return nil
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckID reports why text cannot be the id of a coordinator or a worker: it stands in
// subjects of NATS, URLs and metrics.
func CheckID(text string) error {
	if !idPattern.MatchString(text) {
		return fmt.Errorf("the id %.80q is not valid: want 1 to 64 letters, digits, - or _", text)
	}
	return nil
}

// The longest host of an address: 253 bytes of a name in DNS.
const maxHost = 253

var errAddress = errors.New("want HOST:PORT, such as 10.0.0.1:7100 or [::1]:7100")

// CheckAddress reports why text is not the address of a server, HOST:PORT. The host is an
// IP address or a name.
func CheckAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return errAddress
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%.20q is not a port: want 1 to 65535", port)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if !isHostName(host) {
		return fmt.Errorf("%.80q is neither an IP address nor the name of a host", host)
	}
	return nil
}

var prefixPattern = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// CheckPrefix reports why text is not the path below which a proxy has the API, such as /coppice.
func CheckPrefix(text string) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "/"), "/")
	switch {
	case len(text) > 256 || !prefixPattern.MatchString(text):
		return fmt.Errorf("the path %.80q: want / and a name, such as /coppice, of letters, digits, -, _, . or ~", text)
	case slices.Contains([]string{"v1", "ui", "healthz", "readyz", "metrics"}, first):
		return fmt.Errorf("the path %.80q begins as a path of the API or of the page; choose another one", text)
	}
	return nil
}

// ParsePublicURL reads the URL by which people reach a cluster through a proxy, such as https://example.org/coppice.
// The path is empty, or passes CheckPrefix. The host is as browsers write it: in lower case, without the usual port.
func ParsePublicURL(text string) (*url.URL, error) {
	u, err := url.ParseRequestURI(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.ContainsAny(text, "?#") {
		return nil, fmt.Errorf("%.80q is not the URL of a server: want one such as https://example.org/coppice", text)
	}
	usual, port := map[string]string{"http": "80", "https": "443"}[u.Scheme], u.Port()
	if port == "" {
		port = usual
	}
	if u.Path = strings.TrimSuffix(u.EscapedPath(), "/"); u.Path != "" {
		if err := CheckPrefix(u.Path); err != nil {
			return nil, err
		}
	}
	if err := CheckAddress(net.JoinHostPort(u.Hostname(), port)); err != nil {
		return nil, err
	}
	u.Host, u.RawPath = strings.TrimSuffix(strings.ToLower(u.Host), ":"+usual), ""
	return u, nil
}

// isHostName reports whether text may be the name of a host. What resolvers read as an IPv4
// address, such as 127.1 and 0x7f000001, is none: its last label is a number.
func isHostName(text string) bool {
	name := strings.TrimSuffix(text, ".")
	for i := range len(name) {
		if c := name[i]; !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '.' ||
			c == '-' && i > 0) {
			return false
		}
	}
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	hex, isHex := strings.CutPrefix(last, "0x")
	return len(name) <= maxHost && strings.Trim(last, "0123456789") != "" &&
		!(isHex && strings.Trim(hex, "0123456789abcdef") == "")
}

// CheckReachable reports why text is not an address that other machines can be told to
// connect to: CheckAddress has an error, or nobody else reaches its host.
func CheckReachable(text string) error {
	if err := CheckAddress(text); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(text)
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	switch ip = ip.Unmap().WithZone(""); {
	case ip.IsUnspecified():
		return fmt.Errorf("%s means all interfaces of a machine, so other machines cannot connect to it", host)
	case ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%s is not the address of a single machine", host)
	}
	return nil
}

// SameHost reports whether two hosts of addresses are the same by their texts. A name may stand
// for any address, so localhost is the only name that is known.
func SameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX == nil && errY == nil {
		return x.Unmap() == y.Unmap()
	}
	name := func(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
	local := func(host string, ip netip.Addr, err error) bool {
		return err != nil && name(host) == "localhost" || err == nil &&
			(ip.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ip == netip.IPv6Loopback())
	}
	return name(a) == name(b) || local(a, x, errX) && local(b, y, errY)
}

// SamePlace reports whether two addresses are the same by their texts, as SameHost.
func SamePlace(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && SameHost(hostA, hostB)
}

// Subjects makes the NATS subjects of one cluster: all begin with
// coppice.<cluster>. so that clusters can share one NATS. A name may be "*", which stands for
// all names in a subscription. Each message of a worker names the worker in its subject.
type Subjects struct{ Cluster string }

func (s Subjects) of(tail string) string { return "coppice." + s.Cluster + "." + tail }

// Heartbeats carries the heartbeats of a worker to all coordinators.
func (s Subjects) Heartbeats(worker string) string { return s.of("beat." + worker) }

// Lead carries the leader's Lead messages to all workers.
func (s Subjects) Lead() string { return s.of("lead") }

// Work carries the leader's messages to one worker: Setup, Value, Run, Forget,
// Hold, Probe. Each names the worker's Reply as the subject for answers.
func (s Subjects) Work(worker string) string { return s.of("work." + worker) }

// Results carries workers' messages to the leader of one epoch: Partial, Result,
// Checkpoint, Progress, Need, Fail. The last word of the subject is the worker: see
// ResultsOf.
func (s Subjects) Results(coordinator string, epoch uint64) string {
	return s.of("results." + coordinator + "." + strconv.FormatUint(epoch, 10))
}

// ResultsOf is the subject below results (of Results) for the answers of one worker.
// NATS itself answers there, at once, when nobody listens on the worker's Work.
func ResultsOf(results, worker string) string { return results + "." + worker }

// AllResults is the subject of the results from a worker for a coordinator, of all epochs.
func (s Subjects) AllResults(coordinator, worker string) string {
	return s.of("results." + coordinator + ".*." + worker)
}

// Sender returns the worker that sent a message: the last word of a subject of Heartbeats or
// ResultsOf.
func Sender(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// PassedOn ends the subject on which a coordinator passes a request on to all coordinators.
const PassedOn = ".all"

// Fetch takes BlobGet requests of a worker. Any coordinator with the blob answers. A
// coordinator that lacks the blob passes the request on, below the same subject: see PassedOn.
func (s Subjects) Fetch(worker string) string { return s.of("fetch." + worker) }

// CoordinatorBlobs takes BlobGet requests for one coordinator.
func (s Subjects) CoordinatorBlobs(coordinator string) string {
	return s.of("blobs.coordinator." + coordinator)
}

// WorkerBlobs takes BlobGet requests for one worker. A worker may have the name of a
// coordinator, and does not receive the requests for it.
func (s Subjects) WorkerBlobs(worker string) string { return s.of("blobs.worker." + worker) }

// Replicate takes Replicate requests for one coordinator.
func (s Subjects) Replicate(coordinator string) string { return s.of("replicate." + coordinator) }

// Answers is the beginning of the subjects on which one worker's requests are answered.
func (s Subjects) Answers(worker string) string { return s.of("answers." + worker) }

// Inbox is the beginning of the subjects on which one coordinator's requests are answered.
func (s Subjects) Inbox(coordinator string) string { return s.of("inbox." + coordinator) }

// MayAnswer reports whether a coordinator answers a request on the subject that it names for
// its answer. A worker gets answers on its own subject only, and a coordinator on the subject of
// a coordinator. A client could otherwise have the coordinator send to a subject on which only
// coordinators may send.
func (s Subjects) MayAnswer(subject, reply string) bool {
	if worker, ok := strings.CutPrefix(subject, s.Fetch("")); ok {
		return strings.HasPrefix(reply, s.Answers(strings.TrimSuffix(worker, PassedOn))+".")
	}
	return strings.HasPrefix(reply, s.Inbox(""))
}

// MemberEntry records a coordinator's addresses.
type MemberEntry struct {
	ID      string `json:"id"`
	HTTP    string `json:"http"` // host:port
	Raft    string `json:"raft"`
	NATS    string `json:"nats"` // URL that workers connect to
	Version string `json:"version"`
	// Routes is the host:port at which its embedded NATS takes connections of the other
	// coordinators; empty with an external NATS.
	Routes string `json:"routes,omitempty"`
}

// ModelRef names a model file's blob.
type ModelRef struct {
	Digest string `json:"digest"` // of the model
	Blob   string `json:"blob"`   // SHA-256 of the file
	Bytes  uint64 `json:"bytes"`
}

// BlobRef names a blob.
type BlobRef struct {
	Blob  string `json:"blob"` // its SHA-256
	Bytes uint64 `json:"bytes"`
}

// Revocation is a certificate that is refused from now on.
type Revocation struct {
	Serial   string `json:"serial"`             // hexadecimal digits
	Identity string `json:"identity,omitempty"` // for display; empty: it is not known
	Until    int64  `json:"until,omitempty"`    // Unix seconds, when the certificate ends; 0: it is not known
	Time     int64  `json:"time"`               // Unix seconds, when it was revoked
}
