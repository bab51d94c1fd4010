package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Micros are millionths of a US dollar, in which all money is counted, so that sums are exact.
type Micros int64

const (
	// MaxUSD is more than any single call costs; a higher value is wrong.
	MaxUSD    Micros = 10_000_000_000
	MaxBudget Micros = 1_000_000_000_000_000
)

// String returns the decimal number of dollars: 0.03752.
func (m Micros) String() string {
	return strings.TrimSuffix(strings.TrimRight(new(big.Rat).SetFrac64(int64(m), 1_000_000).FloatString(6), "0"), ".")
}

func (m Micros) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// Dollars returns money for people, to the cent: $1,234.50.
func (m Micros) Dollars() string {
	cents := (m + 5000) / 10_000
	if cents == 0 && m > 0 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%s.%02d", Thousands(int64(cents/100)), cents%100)
}

// ParseMicros reads a decimal number of dollars and rounds it half up to a millionth, exactly. ok is false for anything
// but a number from 0 to most.
func ParseMicros(text string, most Micros) (m Micros, ok bool) {
	if len(text) > 64 || strings.Trim(text, "0123456789.+-eE") != "" {
		return 0, false
	}
	// The float only tells whether the exact number is small enough to be computed.
	switch about, err := strconv.ParseFloat(text, 64); {
	case err != nil || about < 0 || about > 1e9:
		return 0, false
	case about < 1e-9:
		return 0, true
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	exact.Mul(exact, big.NewRat(1_000_000, 1)).Add(exact, big.NewRat(1, 2))
	whole := new(big.Int).Quo(exact.Num(), exact.Denom())
	return Micros(whole.Int64()), whole.Int64() <= int64(most)
}

// Tokens are counts of tokens: Input without those read from a cache or written to one.
type Tokens struct {
	Input         int64 `json:"input"`
	CacheRead     int64 `json:"cache_read"`
	CacheCreation int64 `json:"cache_creation"`
	Output        int64 `json:"output"`
}

// MaxTokens is more than any single call has of a kind; a higher value is wrong.
const MaxTokens = 1_000_000_000

func (t Tokens) Plus(other Tokens) Tokens {
	return Tokens{
		t.Input + other.Input, t.CacheRead + other.CacheRead, t.CacheCreation + other.CacheCreation, t.Output + other.Output,
	}
}

// Times returns n times t.
func (t Tokens) Times(n int64) Tokens {
	return Tokens{n * t.Input, n * t.CacheRead, n * t.CacheCreation, n * t.Output}
}

func (t Tokens) Sum() int64 { return t.Input + t.CacheRead + t.CacheCreation + t.Output }

// Valid reports whether all counts are possible for a single call.
func (t Tokens) Valid() bool {
	for _, n := range [...]int64{t.Input, t.CacheRead, t.CacheCreation, t.Output} {
		if n < 0 || n > MaxTokens {
			return false
		}
	}
	return true
}

// Call is a single model call by a coding agent's client. Nothing of what was said in it is kept.
type Call struct {
	Key     string    // identifies the call, however often it is sent
	At      time.Time // zero if unknown
	Client  string    // claude-code, codex, gemini-cli, or another program's name
	Session string    // the client's id of it, "" for none
	Model   string
	Tokens  Tokens
	// Stated is what the client says that it costs, nil if it says nothing. Cost is that, or what it costs by our
	// prices; nil without a price.
	Stated, Cost *Micros
	// Project and StoryID are what the call is for; "" for none.
	Project, StoryID string
	Holder           string // who sent it, as Actor.Holder returns it
	By               string // the sender's name
	AgentID          string // "" unless an agent's command sent it
}

func CallKey(parts ...string) string {
	sum := sha256.Sum256(EncodeJSON(parts))
	return hex.EncodeToString(sum[:16])
}

// maxCallText is how long a model, a client and a session may be, in characters.
const maxCallText = 200

// Valid reports whether a call is possible.
func (c *Call) Valid() bool {
	short := func(s string) bool { return utf8.RuneCountInString(s) <= maxCallText }
	return c.Tokens.Valid() && (c.Stated == nil || *c.Stated >= 0 && *c.Stated <= MaxUSD) &&
		short(c.Client) && short(c.Session) && short(c.Model)
}

// Received returns the time of a call received now: its own, unless the sender's clock must be wrong.
func (c *Call) Received(now time.Time) time.Time {
	if c.At.After(now.Add(time.Minute)) || c.At.Before(now.Add(-24*time.Hour)) {
		return now
	}
	return c.At
}

// Price is what a model costs, in millionths of a Micros per token: a millionth of a dollar per million tokens.
type Price struct{ Input, CacheRead, CacheCreation, Output int64 }

// MaxPrice is the highest price, 2,000 dollars per million tokens: calls at that price can still be computed.
const MaxPrice = 2_000_000_000

// Of returns what a call costs, rounded half up.
func (p Price) Of(t Tokens) Micros {
	sum := t.Input*p.Input + t.CacheRead*p.CacheRead + t.CacheCreation*p.CacheCreation + t.Output*p.Output
	return Micros((sum + 500_000) / 1_000_000)
}

// CostSum is what calls cost together.
type CostSum struct {
	USD      Micros `json:"usd"`
	Tokens   Tokens `json:"tokens"`
	Calls    int64  `json:"calls"`
	Unpriced int64  `json:"unpriced"` // the calls without a price, which are not in USD
}

func (s *CostSum) Plus(other CostSum) {
	s.USD += other.USD
	s.Tokens = s.Tokens.Plus(other.Tokens)
	s.Calls += other.Calls
	s.Unpriced += other.Unpriced
}

// Cost is what a story costs in all.
type Cost struct {
	CostShare
	Models []CostShare // the dearest first
}

// CallSum is what a sender's calls in a session to a model for a story cost, in a span of time.
type CallSum struct {
	StoryKey
	CostSum
	Span                                        int
	Holder, By, AgentID, Client, Session, Model string
	Last                                        time.Time
}

// Budgets are what people want to spend at most, 0 for no limit: on a story, and on a project in a day of Zone. With
// Stop, whoever exceeds one gets no new story until somebody acknowledges that.
type Budgets struct {
	Story, Day Micros
	Zone       *time.Location
	Stop       bool
}

// Spending is what a story costs or, without an ID, all calls of a project, and when that passed a limit, zero if it
// has not.
type Spending struct {
	StoryKey
	USD    Micros
	Passed time.Time
}

// ClaimPeriod is a story that somebody claims, or claimed until Ended.
type ClaimPeriod struct {
	StoryKey
	Since, Ended time.Time // Ended is zero while it lasts
}
