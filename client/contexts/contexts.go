// Package contexts reads and writes the file with the contexts of a user: named clusters, each with
// addresses and the paths of files. The file has no secrets.
package contexts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coppice-ldl/coppice/internal/config"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	private = 0o600
	// others are the permissions of other users.
	others = 0o077
)

// Context is a cluster, and how a user proves an identity to it.
type Context struct {
	Name      string   `json:"name"`
	Server    []string `json:"server"`               // addresses of coordinators
	CA        string   `json:"ca,omitempty"`         // file with the authorities of the cluster
	TokenFile string   `json:"token_file,omitempty"` // file with a token
	TLSDir    string   `json:"tls_dir,omitempty"`    // folder with a certificate, in place of the two files
}

// Check returns an error if a context cannot be used.
func (c *Context) Check() error {
	var err error
	switch {
	case protocol.CheckID(c.Name) != nil:
		return fmt.Errorf("the name %.80q of a context is not valid: want 1 to 64 letters, digits, - or _", c.Name)
	case len(c.Server) == 0:
		err = errors.New("server is missing")
	case c.TLSDir != "" && (c.TokenFile != "" || c.CA != ""):
		err = errors.New("tls_dir excludes ca and token_file, because the folder has a certificate and ca.crt")
	case c.TokenFile != "" && c.CA == "":
		err = errors.New("token_file needs ca, a file with the authorities of the cluster, because a token is never sent " +
			"without TLS")
	}
	if err != nil {
		return fmt.Errorf("context %s: %w", c.Name, err)
	}
	return nil
}

// File is the content of the file.
type File struct {
	Path    string
	Current string // name of the context that is used by default; empty: none
	// Contexts are in the order of their names.
	Contexts []Context
}

// DefaultPath returns the path of the file: coppice/contexts.yaml in XDG_CONFIG_HOME, or in ~/.config.
// It is empty if neither is known.
func DefaultPath() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" || !filepath.IsAbs(dir) { // a relative path is not valid there
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "coppice", "contexts.yaml")
}

// Load reads a file. If the file does not exist, or is in a folder that the user may not enter, the
// result has no contexts. A file that other users may read or write is refused.
func Load(path string) (*File, error) {
	if path == "" {
		return new(File), nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return &File{Path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & others; open != 0 {
		return nil, fmt.Errorf("%s: the mode is %04o, but other users must not use the file; run: chmod 600 %s", path,
			info.Mode().Perm(), path)
	}
	if info.Size() > config.MaxBytes {
		return nil, fmt.Errorf("%s: want at most %d bytes, got %d", path, config.MaxBytes, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, b)
}

// Parse reads the text of a file. Unknown keys are errors.
func Parse(path string, b []byte) (*File, error) {
	root, err := config.Parse(path, b)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	for _, k := range root.Keys {
		switch {
		case k.Name == "current" && k.Section == nil && k.List == nil:
			f.Current = k.Value
		case k.Name == "contexts" && k.Section != nil:
			for _, one := range k.Section.Keys {
				if one.Section == nil {
					return nil, root.Errorf(one.Place, "%s: want the keys of a context, such as server", one.Name)
				}
				c, err := read(one.Name, one.Section)
				if err != nil {
					return nil, err
				}
				if err := c.Check(); err != nil {
					return nil, root.Errorf(one.Place, "%v", err)
				}
				f.Contexts = append(f.Contexts, *c)
			}
		case k.Name == "current", k.Name == "contexts":
			return nil, root.Errorf(k.Place, "%s: want %s", k.Name, map[string]string{"current": "the name of a context",
				"contexts": "a section with a section for each context"}[k.Name])
		default:
			return nil, root.Errorf(k.Place, "there is no key %.80q; want current or contexts", k.Name)
		}
	}
	slices.SortFunc(f.Contexts, func(a, b Context) int { return cmp.Compare(a.Name, b.Name) })
	if f.Current != "" {
		if _, err := f.Find(f.Current); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// read reads the keys of a context.
func read(name string, s *config.Section) (*Context, error) {
	c := &Context{Name: name}
	for _, k := range s.Keys {
		into := map[string]*string{"ca": &c.CA, "token_file": &c.TokenFile, "tls_dir": &c.TLSDir}[k.Name]
		switch {
		case k.Section != nil || k.List != nil && k.Name != "server" || k.List == nil && k.Value == "":
			return nil, s.Errorf(k.Place, "%s: want one value", k.Name)
		case k.Name == "server" && k.List != nil:
			c.Server = k.List
		case k.Name == "server":
			c.Server = []string{k.Value}
		case into == nil:
			return nil, s.Errorf(k.Place, "there is no key %.80q of a context; want server, ca, token_file or tls_dir", k.Name)
		case !filepath.IsAbs(k.Value):
			return nil, s.Errorf(k.Place, "%s: want an absolute path", k.Name)
		default:
			*into = k.Value
		}
	}
	return c, nil
}

// Find returns the context with a name.
func (f *File) Find(name string) (*Context, error) {
	for i := range f.Contexts {
		if f.Contexts[i].Name == name {
			return &f.Contexts[i], nil
		}
	}
	return nil, missing(fmt.Sprintf("%s has no context %q; coppice context list shows them, and coppice context set "+
		"makes one", f.Path, name))
}

// missing is the error about a context that does not exist.
type missing string

func (m missing) Error() string { return string(m) }

// Is makes errors.Is(err, fs.ErrNotExist) true.
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// Set adds a context, or replaces the one with its name.
func (f *File) Set(c Context) error {
	if err := c.Check(); err != nil {
		return err
	}
	i, found := slices.BinarySearchFunc(f.Contexts, c.Name, func(c Context, name string) int {
		return cmp.Compare(c.Name, name)
	})
	if found {
		f.Contexts[i] = c
	} else {
		f.Contexts = slices.Insert(f.Contexts, i, c)
	}
	return nil
}

// Delete deletes a context. If it is the current one, there is no current context.
func (f *File) Delete(name string) error {
	if _, err := f.Find(name); err != nil {
		return err
	}
	f.Contexts = slices.DeleteFunc(f.Contexts, func(c Context) bool { return c.Name == name })
	if f.Current == name {
		f.Current = ""
	}
	return nil
}

// Text writes the file as Parse reads it.
func (f *File) Text() []byte {
	var b bytes.Buffer
	if f.Current != "" {
		fmt.Fprintf(&b, "current: %s\n", quote(f.Current))
	}
	if len(f.Contexts) > 0 {
		b.WriteString("contexts:\n")
	}
	for _, c := range f.Contexts {
		var servers []string
		for _, s := range c.Server {
			servers = append(servers, quote(s))
		}
		fmt.Fprintf(&b, "  %s:\n    server: [%s]\n", quote(c.Name), strings.Join(servers, ", "))
		for _, k := range [][2]string{{"ca", c.CA}, {"token_file", c.TokenFile}, {"tls_dir", c.TLSDir}} {
			if k[1] != "" {
				fmt.Fprintf(&b, "    %s: %s\n", k[0], quote(k[1]))
			}
		}
	}
	return b.Bytes()
}

// quote writes a text in double quotes. YAML reads a text of JSON.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text always marshals
	}
	return string(b)
}

// Save writes the file with the mode 0600.
func (f *File) Save() error {
	if f.Path == "" {
		return errors.New("the folder of the user is not known; set HOME or XDG_CONFIG_HOME")
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	if err := files.Replace(f.Path, f.Text(), private); err != nil {
		return err
	}
	return os.Chmod(f.Path, private)
}
