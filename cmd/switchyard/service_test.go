package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAServiceManagerIsToldWhenTheGatewayServes(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cmd := switchyard(t, dir, "gateway", "--listen=localhost:0", "--data=DIR/data")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket)
	p := start(t, cmd)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	message := make([]byte, 64)
	n, err := conn.Read(message)
	if err != nil || string(message[:n]) != "READY=1\n" {
		t.Fatalf("told %q, %v", message[:n], err)
	}
	if status, _ := p.do(t, "GET", "/readyz", ""); status != 200 {
		t.Errorf("readyz answers %d after READY=1", status)
	}
}

// The unit is verified with a path that exists in place of the installed program's. Where systemd is missing, the keys
// on which its hardening rests are at least there.
func TestTheSystemdUnitIsSoundAndHardened(t *testing.T) {
	unit, err := os.ReadFile("../../contrib/switchyard.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"Type=notify", "NoNewPrivileges=yes", "ProtectHome=yes", "ProtectSystem=strict", "UMask=0077",
		"ConfigurationDirectoryMode=0755", // systemd.exec(5): unlike the others it is not given to User=, who must read it
	} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	path := filepath.Join(t.TempDir(), "switchyard.service")
	text := strings.ReplaceAll(string(unit), "/usr/local/bin/switchyard", os.Args[0])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "switchyard.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
