package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// module is a module in a binary.
type module struct{ path, version string }

// modulesIn returns the modules that are in one of the binaries, in the order of their paths, and the version of Go.
func modulesIn(binaries map[string][]byte) (modules []module, goVersion string, err error) {
	for name, binary := range binaries {
		info, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		goVersion = strings.TrimPrefix(info.GoVersion, "go")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if one := (module{m.Path, m.Version}); !slices.Contains(modules, one) {
				modules = append(modules, one)
			}
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.path+"@"+a.version, b.path+"@"+b.version) })
	return modules, goVersion, nil
}

// commitIn returns the commit that a binary was built from; empty: the binary has none.
func commitIn(binary []byte) (commit string, err error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return "", err
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return commit, nil
}

// bom returns a software bill of materials in the format CycloneDX.
func bom(id identity, goVersion string, modules []module) ([]byte, error) {
	type component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		Purl    string `json:"purl"`
	}
	describe := func(kind, path, version string) component {
		purl := fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))
		return component{Type: kind, Ref: purl, Name: path, Version: version, Purl: purl}
	}
	root := describe("application", "github.com/coppice-ldl/coppice", "v"+id.version)
	components := []component{describe("library", "std", goVersion)}
	for _, m := range modules {
		components = append(components, describe("library", m.path, m.version))
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.Ref
	}
	type object = map[string]any
	b, err := json.MarshalIndent(object{
		"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
		"version": 1, "metadata": object{"timestamp": id.at.Format(time.RFC3339), "component": root},
		"components": components, "dependencies": []object{{"ref": root.Ref, "dependsOn": refs}},
	}, "", "  ")
	return append(b, '\n'), err
}

// license matches the names of files with the terms of a module.
var license = regexp.MustCompile(`(?i)^(licen[sc]e|copying|copyright|notice|patents|unlicense)([._-].*)?$`)

// notices returns the terms of Go and of all modules. folder returns the folder of a module. A module without terms is
// an error.
func notices(goVersion string, goRoot fs.FS, modules []module, folder func(module) (fs.FS, error)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("The binary coppice contains the software below. No license has been chosen for Coppice itself.\n")
	write := func(title string, files fs.FS) error {
		found := false
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			base := path.Base(name)
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"testdata", "vendor", "_examples"}, base):
				return fs.SkipDir
			case d.IsDir() || !license.MatchString(base) || path.Ext(base) == ".go":
				return nil
			}
			text, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			found = true
			rule := strings.Repeat("=", 80)
			fmt.Fprintf(&b, "\n%s\n%s, %s\n%s\n\n%s\n", rule, title, name, rule, bytes.TrimSpace(text))
			return nil
		})
		if err == nil && !found {
			err = fmt.Errorf("%s: there is no file with its license", title)
		}
		return err
	}
	if err := write("Go "+goVersion, goRoot); err != nil {
		return nil, err
	}
	for _, m := range modules {
		files, err := folder(m)
		if err != nil {
			return nil, err
		}
		if err := write(m.path+" "+m.version, files); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// inCache returns the folder of a module in the module cache.
func inCache(cache string, m module) (fs.FS, error) {
	escaped := regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(m.path+"@"+m.version, func(s string) string {
		return "!" + strings.ToLower(s)
	})
	dir := filepath.Join(cache, filepath.FromSlash(escaped))
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%s %s is not in the module cache: %w", m.path, m.version, err)
	}
	return os.DirFS(dir), nil
}

// manual writes the page of all commands as a manual page.
func manual(id identity, page string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH COPPICE 1 %s \"Coppice %s\" \"User Commands\"\n.SH NAME\ncoppice \\- %s\n"+
		".SH SYNOPSIS\n.B coppice\n.I COMMAND\n.RI [ FLAGS ]\n.SH DESCRIPTION\n",
		id.at.Format(time.DateOnly), id.version, summary)
	_, page, _ = strings.Cut(page, "\n") // the title
	code, list, header := false, false, true
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		title := strings.TrimLeft(line, "#")
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "| "), `\|`, "\x00"), " | ")
		wasList := list
		list = false
		switch {
		case strings.HasPrefix(line, "```"):
			if code = !code; code {
				b.WriteString(".PP\n.nf\n.RS 4\n")
			} else {
				b.WriteString(".RE\n.fi\n")
			}
		case code:
			b.WriteString(roff(line) + "\n")
		case line == "":
			header = true
			b.WriteString(".PP\n")
		case strings.HasPrefix(line, "<!--"):
		case strings.HasPrefix(line, "## "):
			fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roffText(strings.TrimSpace(title))))
		case title != line:
			fmt.Fprintf(&b, ".SS %s\n", roffText(strings.TrimSpace(title)))
		case strings.HasPrefix(line, "|") && header, strings.HasPrefix(line, "| ---"):
			header = false // the names of the columns, and the line below
		case strings.HasPrefix(line, "|"):
			fmt.Fprintf(&b, ".TP\n%s\n", roffText(cells[0]))
			b.WriteString(roffText(strings.Join(cells[1:], ". ")) + "\n")
		case strings.HasPrefix(line, "- "):
			list = true
			fmt.Fprintf(&b, ".IP \\(bu 2\n%s\n", roffText(line[2:]))
		default:
			if wasList {
				b.WriteString(".PP\n")
			}
			b.WriteString(roffText(line) + "\n")
		}
	}
	return b.Bytes()
}

var (
	link   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	inCode = regexp.MustCompile("`([^`]*)`")
	strong = regexp.MustCompile(`\*\*?([^*]+)\*\*?`)
)

// roffText returns a line of Markdown as roff writes it.
func roffText(line string) string {
	line = roff(strings.ReplaceAll(link.ReplaceAllString(line, "$1"), "\x00", "|"))
	line = inCode.ReplaceAllString(line, `\fB$1\fR`)
	return strong.ReplaceAllString(line, `\fI$1\fR`)
}

// roff escapes a line of text. No line begins with a request.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}
