// Package publicsets fetches public datasets. A list says where their files are and which digests the files have. The
// list of this package can be replaced by a list of the user.
package publicsets

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of a list. Parse refuses a list that exceeds them.
const (
	maxList  = 1 << 20 // bytes of the list
	maxLine  = 8 << 10 // bytes of a line
	maxBytes = 1 << 36 // bytes of a file, and of an archive before and after it is unpacked
)

// Never is the date of an address that nobody has checked.
const Never = "never"

// Set is a public dataset.
type Set struct {
	Name     string `json:"name"`
	Content  string `json:"content,omitempty"`
	Flags    string `json:"read,omitempty"` // flags to read the data file
	Licence  string `json:"licence,omitempty"`
	Citation string `json:"citation,omitempty"`
	Files    []File `json:"files"` // the first one is the data file
}

// File is a file of a dataset.
type File struct {
	Name    string `json:"file"`
	Address string `json:"address"`
	Member  string `json:"member,omitempty"` // path in the archive at the address; empty if the address is of the file
	Bytes   int64  `json:"bytes,omitempty"`  // 0 if not known
	SHA256  string `json:"sha256,omitempty"` // in hex, of the file; empty if not known
	Checked string `json:"checked"`          // the day on which the address had this file, or Never
}

//go:embed sets.tsv
var builtIn []byte

// BuiltIn returns the list of this package.
func BuiltIn() []Set {
	sets, err := Parse("sets.tsv", bytes.NewReader(builtIn))
	if err != nil {
		panic(err)
	}
	return sets
}

// columns are the columns that a list may have. It must have the first three.
var columns = []string{"name", "file", "address", "member", "bytes", "sha256", "checked", "read", "licence", "citation",
	"content"}

// Parse reads a list: lines of columns that are separated by tabs. The first line has the names of the columns. Empty
// lines and lines that begin with # are left out. A set of several files has a line for each file. Errors about the
// list begin with its name and a line.
func Parse(name string, r io.Reader) ([]Set, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxList+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxList {
		return nil, fmt.Errorf("%s: the list has more than %d bytes", name, maxList)
	}
	var sets []Set
	var header []string
	number, at := 0, make(map[string]int) // the index of a set by its name
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\uFEFF")) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fail := func(err error) ([]Set, error) { return nil, fmt.Errorf("%s: line %d: %w", name, number, err) }
		if len(line) > maxLine || !utf8.ValidString(line) {
			return fail(fmt.Errorf("want at most %d bytes of UTF-8", maxLine))
		}
		cells := strings.Split(line, "\t")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if header == nil {
			if err := checkHeader(cells); err != nil {
				return fail(err)
			}
			header = cells
			continue
		}
		s, err := parseSet(header, cells)
		if err != nil {
			return fail(err)
		}
		i, more := at[s.Name]
		if !more {
			at[s.Name] = len(sets)
			sets = append(sets, *s)
			continue
		}
		if err := sets[i].join(s); err != nil {
			return fail(err)
		}
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s: the list has no datasets; want a line with the columns %s, and a line for each file",
			name, strings.Join(columns[:3], ", "))
	}
	return sets, nil
}

// checkHeader checks the names of the columns.
func checkHeader(header []string) error {
	seen := make(map[string]bool)
	for _, c := range header {
		if !slices.Contains(columns, c) {
			return fmt.Errorf("column %q: want names of columns, separated by tabs: %s", c, strings.Join(columns, ", "))
		}
		if seen[c] {
			return fmt.Errorf("column %q is there twice", c)
		}
		seen[c] = true
	}
	for _, c := range columns[:3] {
		if !seen[c] {
			return fmt.Errorf("column %q is missing; a list has at least the columns %s", c, strings.Join(columns[:3], ", "))
		}
	}
	return nil
}

// fileName matches names of datasets and of files, which are safe on every file system.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$`)

// parseSet reads a line about a set and its file.
func parseSet(header, cells []string) (*Set, error) {
	if len(cells) > len(header) {
		return nil, fmt.Errorf("%d columns, but the first line names %d", len(cells), len(header))
	}
	s, f := &Set{}, File{Checked: Never}
	for i, text := range cells {
		if text == "" && !slices.Contains(columns[:3], header[i]) {
			continue
		}
		if strings.ContainsFunc(text, unicode.IsControl) {
			return nil, fmt.Errorf("column %q has control characters", header[i])
		}
		var err error
		switch header[i] {
		case "name":
			s.Name, err = text, checkFileName(text)
		case "file":
			f.Name, err = text, checkFileName(text)
		case "address":
			f.Address, err = text, checkAddress(text)
		case "member":
			f.Member = text
		case "bytes":
			f.Bytes, err = strconv.ParseInt(text, 10, 64)
			if err != nil || f.Bytes < 1 || f.Bytes > maxBytes {
				err = fmt.Errorf("%q: want a number of bytes from 1 to %d", text, int64(maxBytes))
			}
		case "sha256":
			f.SHA256, err = ParseDigest(text)
		case "checked":
			if f.Checked = text; text != Never {
				_, err = time.Parse(time.DateOnly, text)
			}
			if err != nil {
				err = fmt.Errorf("%q: want a day such as 2026-08-31, or %s", text, Never)
			}
		case "read":
			s.Flags, err = text, checkRead(text)
		case "licence":
			s.Licence = text
		case "citation":
			s.Citation = text
		case "content":
			s.Content = text
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", header[i], err)
		}
	}
	for _, c := range columns[:3] {
		if slices.Index(header, c) >= len(cells) {
			return nil, fmt.Errorf("column %q is missing", c)
		}
	}
	s.Files = []File{f}
	return s, nil
}

// join adds the file of another line about the same set.
func (s *Set) join(more *Set) error {
	f := more.Files[0]
	if more.Flags+more.Licence+more.Citation+more.Content != "" {
		return fmt.Errorf("%s: only the first line of a dataset has the columns read, licence, citation and content", s.Name)
	}
	for i := range s.Files {
		if strings.EqualFold(s.Files[i].Name, f.Name) {
			return fmt.Errorf("%s: the file %s is there twice", s.Name, f.Name)
		}
		if s.Files[i].SHA256 == "" || f.SHA256 == "" {
			return fmt.Errorf("%s has several files, so each of them needs a sha256", s.Name)
		}
	}
	s.Files = append(s.Files, f)
	return nil
}

func checkFileName(text string) error {
	if !fileName.MatchString(text) {
		return fmt.Errorf("%.100q: want a name of 1 to 100 letters, digits, dots, hyphens, underscores and +, which begins "+
			"with a letter or a digit", text)
	}
	return nil
}

// checkAddress checks an address of a list, or an address to which a server redirects.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%.200q: want an address that begins with https:// or http://", text)
	case u.User != nil:
		return fmt.Errorf("%.200q: an address with a user or a password is not allowed", u.Redacted())
	}
	return nil
}

// ParseDigest checks a SHA-256 in hex, and returns it in lower case.
func ParseDigest(text string) (string, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 32 {
		return "", fmt.Errorf("%.100q: want a SHA-256, which has 64 hexadecimal digits", text)
	}
	return strings.ToLower(text), nil
}

// readFlags are the flags that a list may have, with true for a flag that has a value. Flags that name other files are
// not among them.
var readFlags = map[string]bool{"--labels": true, "--label-columns": true, "--label-prefix": true,
	"--labels-variable": true, "--features-variable": true, "--feature-columns": true, "--columns": true, "--drop": true,
	"--header": true, "--delimiter": true, "--decimal": true, "--encoding": true, "--categories": true, "--missing": true,
	"--shape": true, "--sigma": true, "--range": true, "--bounds": true, "--values": true, "--intervals": true,
	"--groups": true, "--row-names": true, "--tolerance": true, "--normalize": false, "--zero-based": false}

// checkRead checks the flags of a list.
func checkRead(text string) error {
	for words := strings.Fields(text); len(words) > 0; words = words[1:] {
		hasValue, known := readFlags[words[0]]
		if !known {
			return fmt.Errorf("%.100q: want options about reading a data file, such as --labels class", words[0])
		}
		if !hasValue {
			continue
		}
		if words = words[1:]; len(words) == 0 || strings.HasPrefix(words[0], "-") {
			return fmt.Errorf("%q: an option has no value", text)
		}
	}
	return nil
}
