package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"switchyard/internal/domain"
)

// prices begins the keys of models' prices: prices."MODEL".input.
const prices = "prices."

// price reads a price of a model, in dollars per million tokens.
func (d *document) price(key string, at input, value *unstable.Node) error {
	last := strings.LastIndexByte(key, '.')
	if last < len(prices) {
		return at.fail(errors.New("must be a table, such as {input = 1.25, output = 10}"))
	}
	model := key[len(prices):last]
	if plain, err := strconv.Unquote(model); err == nil {
		model = plain
	}
	p := d.prices[model]
	of := map[string]*int64{
		"input": &p.Input, "output": &p.Output, "cache_read": &p.CacheRead, "cache_creation": &p.CacheCreation,
	}[key[last+1:]]
	if of == nil {
		return at.fail(errors.New("is not a known key: a model has input, output, cache_read and cache_creation"))
	}
	usd, ok := domain.ParseMicros(strings.ReplaceAll(string(value.Data), "_", ""), domain.MaxPrice)
	if value.Kind != unstable.Integer && value.Kind != unstable.Float || !ok {
		return at.fail(errors.New("must be a number of dollars for a million tokens, from 0 to 2000"))
	}
	if *of = int64(usd); d.prices == nil {
		d.prices = map[string]domain.Price{}
	}
	d.prices[model] = p
	return nil
}

// usd stores a number of dollars.
func usd(to *domain.Micros) setter {
	return setter{numberKind, one(to, func(text string) (domain.Micros, error) {
		m, ok := domain.ParseMicros(strings.ReplaceAll(text, "_", ""), domain.MaxBudget)
		if !ok || m == 0 {
			return 0, errors.New("must be a number of dollars above 0")
		}
		return m, nil
	}).set}
}

func parseZone(text string) (*time.Location, error) {
	zone, known := domain.ParseZone(text)
	if !known {
		return nil, fmt.Errorf("%q is not a time zone, such as Europe/Vienna", text)
	}
	return zone, nil
}
