package views

import (
	"testing"

	"switchyard/internal/domain"
)

// TestTokensOfAgentsAreOneRun: each has made its own, and between them nothing else happened.
func TestTokensOfAgentsAreOneRun(t *testing.T) {
	made := func(who string, via domain.Via) AuditLine {
		return AuditLine{AuditEntry: domain.AuditEntry{Who: who, Via: via, Action: domain.TokenCreated}}
	}
	runs := auditRuns([]AuditLine{
		made("b1", domain.ViaAgent), made("b2", domain.ViaAgent), made("b3", domain.ViaAgent),
		made("zoe", domain.ViaToken), made("max", domain.ViaToken), made("amy", domain.ViaToken),
	})
	if len(runs) != 4 || len(runs[0]) != 3 {
		t.Errorf("%d runs, the first of %d", len(runs), len(runs[0]))
	}
}
