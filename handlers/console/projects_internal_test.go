package console

import "testing"

func TestAnAddressMayLackItsScheme(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:3001": "http://localhost:3001", " localhost ": "http://localhost", "127.0.0.1:3001/board": "http://127.0.0.1:3001/board",
		"[::1]:3001": "http://[::1]:3001", "ci:8080": "http://ci:8080", "ci.example.org": "http://ci.example.org",
		"https://ci.example.org": "https://ci.example.org", "ftp://127.0.0.1": "ftp://127.0.0.1", "nonsense": "nonsense", "": "",
		"mailto:me": "mailto:me", "two words.": "two words.",
	} {
		if got := withScheme(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
