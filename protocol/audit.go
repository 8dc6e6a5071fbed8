package protocol

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// AuditRecord says that a caller has asked for a change, and what became of it. If Count is above
// 0, it says instead that a caller was refused so many requests.
type AuditRecord struct {
	Number  uint64 `json:"number"` // the first record has 1
	Time    int64  `json:"time"`   // Unix seconds
	Caller  string `json:"caller"` // name of a user or a process; -: it is not known
	Role    string `json:"role"`
	Token   string `json:"token,omitempty"`   // id of the caller's token
	Serial  string `json:"serial,omitempty"`  // of the caller's certificate
	From    string `json:"from"`              // address of the caller
	Via     string `json:"via,omitempty"`     // name of the proxy that has sent the request
	Request string `json:"request"`           // method and path; of several refusals, the last
	About   string `json:"about,omitempty"`   // the job or the dataset, for example
	Refused string `json:"refused,omitempty"` // why the request was refused; empty: it was not
	Count   uint64 `json:"count,omitempty"`   // refused requests; 0: the record is about one change
}

// NoCaller stands for the name of a caller that has none.
const NoCaller = "-"

// Clip shortens the texts of a record: 10,000 records must be small.
func (r *AuditRecord) Clip() {
	r.Caller = cmp.Or(r.Caller, NoCaller)
	for _, f := range r.texts() {
		*f.text = clip(*f.text, f.most)
	}
}

// maxVia bounds the bytes of AuditRecord.Via.
const maxVia = 64

// recordText is a text of a record, and how many bytes it may have.
type recordText struct {
	text *string
	most int
}

func (r *AuditRecord) texts() []recordText {
	return []recordText{
		{&r.Caller, 64}, {&r.Role, 16}, {&r.Token, 16}, {&r.Serial, MaxSerial}, {&r.From, 64}, {&r.Request, 128}, {&r.About, 96}, {&r.Refused, 192},
		{&r.Via, maxVia},
	}
}

// clip returns the first bytes of a text, and marks what is left out.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	const mark = "..."
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// RequestEntry is a change that a caller asks for. The state applies Inner, and keeps Record with
// what became of it.
type RequestEntry struct {
	Record AuditRecord // without Number, Refused and Count
	Inner  []byte      // an entry, but no RequestEntry
}

// Append encodes the entry.
func (e *RequestEntry) Append(dst []byte) []byte { return e.code(coder{b: dst}).b }

// Decode reads the entry. Inner shares the memory of b.
func (e *RequestEntry) Decode(b []byte) error {
	c := e.code(coder{b: b, reads: true})
	if kind, err := KindOf(e.Inner); err != nil || kind == Kind(EntryRequest) {
		c.fail("the inner entry of %d bytes is not valid", len(e.Inner))
	}
	return c.end()
}

func (e *RequestEntry) code(c coder) coder {
	c.begin(Kind(EntryRequest))
	seconds := uint64(e.Record.Time)
	numbers(&c, &seconds)
	e.Record.Time = int64(seconds)
	for _, f := range e.Record.texts() {
		if f.text != &e.Record.Via {
			c.text(f.text, uint32(f.most))
		}
	}
	c.bytes(&e.Inner)
	switch { // an entry without a proxy ends here, as older ones do
	case c.reads && len(c.b) == 0:
		e.Record.Via = ""
	case c.reads || e.Record.Via != "":
		if c.text(&e.Record.Via, maxVia); e.Record.Via == "" {
			c.fail("the name of a proxy is empty")
		}
	}
	return c
}

// RecordEntry keeps records of what is no entry: changes of members, backups, and refusals.
type RecordEntry struct {
	Records []AuditRecord `json:"records"` // at most MaxRecords
}

// MaxRecords bounds the records of one RecordEntry.
const MaxRecords = 64

// Revocation is a certificate that is refused from now on.
type Revocation struct {
	Serial   string `json:"serial"`             // hexadecimal digits
	Identity string `json:"identity,omitempty"` // for display; empty: it is not known
	Until    int64  `json:"until,omitempty"`    // Unix seconds, when the certificate ends; 0: it is not known
	Time     int64  `json:"time"`               // Unix seconds, when it was revoked
}

// RevokeEntry revokes a certificate. A certificate that is revoked already stays so. Certificates
// that had ended a day before Time are forgotten.
type RevokeEntry struct{ Revocation }

// MaxSerial bounds the digits of a serial number, and MaxIdentity the bytes of an identity.
const (
	MaxSerial   = 40
	MaxIdentity = 256
)

// CheckSerial reports whether a text is the serial number of a certificate: hexadecimal digits in
// lower case, without zeros before them.
func CheckSerial(text string) bool {
	return text != "" && len(text) <= MaxSerial && text[0] != '0' && strings.Trim(text, "0123456789abcdef") == ""
}

// AuditQuery says which audit records a client asks for.
type AuditQuery struct {
	Limit   int    // at most so many; 0: 100
	Since   int64  // Unix seconds; older records are left out
	Caller  string // the name of the caller; empty: all
	Refused bool   // true: only requests that were refused
}
