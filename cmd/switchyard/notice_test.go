package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var writeNotice = flag.Bool("write-notice", false, "let TestTheNoticeHasTheLicencesOfWhatIsLinkedIn write the modules' part of NOTICE")

// noticeModules is the line of NOTICE after which the text is generated from the modules' files.
const noticeModules = "# Go modules\n"

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)`)

func TestTheNoticeHasTheLicencesOfWhatIsLinkedIn(t *testing.T) {
	data, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	head, modules, found := strings.Cut(string(data), noticeModules)
	if !found {
		t.Fatalf("NOTICE lacks the line %q", noticeModules)
	}
	if want := licences(t); modules != want {
		if *writeNotice {
			if err := os.WriteFile("../../NOTICE", []byte(head+noticeModules+want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			t.Error("NOTICE is not of the modules that are linked in; run: go test ./cmd/switchyard -run Notice -write-notice")
		}
	}
	scripts, err := filepath.Glob("../../static/vendor/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatal(scripts, err)
	}
	for _, script := range scripts {
		if !strings.Contains(head, filepath.Base(script)) {
			t.Errorf("NOTICE does not name %s", filepath.Base(script))
		}
	}
}

// licences returns the licence texts of the modules linked into the program, each under its name.
func licences(t *testing.T) string {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=Module", ".")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	var order []string
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if m := p.Module; m != nil && !m.Main && texts[m.Path] == "" {
			texts[m.Path] = fmt.Sprintf("\n## %s %s\n%s", m.Path, m.Version, licenceOf(t, m.Dir))
			order = append(order, m.Path)
		}
	}
	slices.Sort(order)
	var all strings.Builder
	for _, path := range order {
		all.WriteString(texts[path])
	}
	return all.String()
}

func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "\n### %s\n\n%s\n", entry.Name(), strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if all.Len() == 0 {
		t.Errorf("%s has no licence", dir)
	}
	return all.String()
}
