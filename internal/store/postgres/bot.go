package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

var aboutBot = []domain.Topic{domain.TopicBot}

// testLife is how long a request for a test message is valid.
const testLife = time.Minute

// bot is what gateways share of the chat bot.
type bot struct{ db *DB }

// BotConfig returns the stored configuration and its version, which increases with each save; 0 before the first.
func (b bot) BotConfig(ctx context.Context) (c domain.BotConfig, version int64, err error) {
	c.Transport = domain.BotNetworks[0].Transport
	var text string
	err = b.db.tables.QueryRowContext(ctx, "SELECT config, version FROM bot_config").Scan(&text, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return c, 0, nil
	}
	if err != nil {
		return c, 0, b.db.Translate(err)
	}
	c, err = ReadBotConfig(text)
	return c, version, err
}

func ReadBotConfig(text string) (domain.BotConfig, error) {
	var stored map[string]*string
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return domain.BotConfig{}, err
	}
	return domain.ReadBotConfig(func(key string) (*string, error) { return stored[key], nil })
}

func (b bot) SaveBotConfig(ctx context.Context, c domain.BotConfig) error {
	_, err := b.storeBotConfig(ctx, c, "UPDATE SET config = excluded.config, version = bot_config.version + 1")
	return err
}

// ImportBotConfig stores a configuration if there is none yet, and reports whether it did.
func (b bot) ImportBotConfig(ctx context.Context, c domain.BotConfig) (imported bool, err error) {
	return b.storeBotConfig(ctx, c, "NOTHING")
}

func (b bot) storeBotConfig(ctx context.Context, c domain.BotConfig, onConflict string) (stored bool, err error) {
	text := domain.EncodeJSON(c.Values())
	err = b.db.Tx(ctx, aboutBot, store.Try(&stored, store.Must(
		"INSERT INTO bot_config (config, version) VALUES ($1, 1) ON CONFLICT (only_row) DO "+onConflict, string(text))))
	return stored, err
}

// BotRun returns the last stored state of the running bot. It returns NotFound when there is none.
func (b bot) BotRun(ctx context.Context) (r domain.BotRun, err error) {
	var text string
	if err := b.db.tables.QueryRowContext(ctx, "SELECT run, at FROM bot_run").Scan(&text, &r.At); err != nil {
		return r, b.db.Translate(err)
	}
	at := r.At
	err = json.Unmarshal([]byte(text), &r)
	r.At = at
	return r, err
}

func (b bot) SetBotRun(ctx context.Context, token int64, r domain.BotRun) error {
	text := domain.EncodeJSON(r)
	return b.db.LeaderTx(ctx, token, aboutBot, store.Do(`INSERT INTO bot_run (run, at) VALUES ($1, clock_timestamp())
		ON CONFLICT (only_row) DO UPDATE SET run = excluded.run, at = excluded.at`, string(text)))
}

// AskBotTest requests a message from the gateway that runs the bot, "" for a test message.
func (b bot) AskBotTest(ctx context.Context, id, message string) error {
	return b.db.Tx(ctx, aboutBot,
		store.Do("DELETE FROM bot_tests WHERE asked_at < clock_timestamp() - make_interval(secs => $1)", testLife.Seconds()),
		store.Do("INSERT INTO bot_tests (id, message) VALUES ($1, $2)", id, message))
}

// TakeBotTest removes and returns a request for a message. It returns NotFound when there is none.
func (b bot) TakeBotTest(ctx context.Context) (id, message string, err error) {
	err = b.db.tables.QueryRowContext(ctx, `UPDATE bot_tests SET taken = TRUE WHERE id = (
		SELECT id FROM bot_tests WHERE NOT taken AND asked_at > clock_timestamp() - make_interval(secs => $1)
		ORDER BY asked_at LIMIT 1 FOR UPDATE SKIP LOCKED
	) RETURNING id, message`, testLife.Seconds()).Scan(&id, &message)
	return id, message, b.db.Translate(err)
}

// AnswerBotTest stores the result of a test message: why it failed, or "".
func (b bot) AnswerBotTest(ctx context.Context, id, answer string) error {
	return b.db.Tx(ctx, aboutBot, store.Do("UPDATE bot_tests SET answer = $2 WHERE id = $1", id, answer))
}

// BotTestAnswer returns the result of a test message, answered being false until there is one.
func (b bot) BotTestAnswer(ctx context.Context, id string) (answer string, answered bool, err error) {
	var stored sql.NullString
	err = b.db.tables.QueryRowContext(ctx, "SELECT answer FROM bot_tests WHERE id = $1", id).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) { // the request has expired
		return "", false, nil
	}
	return stored.String, stored.Valid, b.db.Translate(err)
}
