package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxProgram is the size of the program in bytes that make bench names as its goal.
const maxProgram = 24 << 20

func TestTwoDirectoriesBuildTheSameBytes(t *testing.T) {
	const root = "../.."
	list, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for path := range strings.FieldsSeq(string(list)) {
		data, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(elsewhere, path)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(elsewhere, path), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	what := "./cmd/switchyard"
	if testing.Short() {
		what = "./static" // what is embedded; to link the whole program takes seconds
	}
	var programs [2][]byte
	for i, dir := range []string{root, elsewhere} {
		program := filepath.Join(t.TempDir(), "switchyard")
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "nethttpomithttp2,nopgxregisterdefaulttypes", "-ldflags=-s -w", "-o", program, what)
		command.Dir = dir
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if programs[i], err = os.ReadFile(program); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the directory of the build shows in the program")
	}
	if size := len(programs[0]); size > maxProgram {
		t.Errorf("the program has %d bytes, of %d at most", size, maxProgram)
	}
}
