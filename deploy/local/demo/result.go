package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// fetched gets the result as a plugin does: the suite gives a link, S3 gives the JSON to whoever has the link, and to nobody else.
func (r *run) fetched(ctx context.Context) error {
	a, err := r.d.plugin.ask(ctx, "GET", r.now.Links["result"], nil)
	if err != nil {
		return err
	}
	var link struct {
		URL       string    `json:"url"`
		ExpiresAt time.Time `json:"expiresAt"`
		Key       string    `json:"key"`
	}
	if err := a.read(200, &link); err != nil {
		return err
	}
	status, body, err := r.fetch(ctx, link.URL)
	if err != nil {
		return err
	}
	var result struct {
		Run      string `json:"run"`
		ScreenID string `json:"screen_id"`
	}
	if err := json.Unmarshal(body, &result); err != nil || status != 200 || result.Run != r.now.ID || result.ScreenID != r.screen() {
		return surprise("GET "+link.Key, "200 and the result of run "+r.now.ID, fmt.Sprintf("%d %.200s", status, body))
	}
	r.say("S3   %s: %d bytes of JSON; the link works for %.0f s", link.Key, len(body), time.Until(link.ExpiresAt).Seconds())
	return r.guarded(ctx, link.URL)
}

// guarded expects that the link is worth nothing without its signature.
func (r *run) guarded(ctx context.Context, link string) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	u.RawQuery = ""
	status, _, err := r.fetch(ctx, u.String())
	if err != nil {
		return err
	}
	if status != 403 {
		return surprise("GET the link without its signature", "403", fmt.Sprint(status))
	}
	r.say("S3   without its signature: 403")
	return nil
}

// fetch goes to S3 without the plugin's token.
func (r *run) fetch(ctx context.Context, link string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", link, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := r.d.plugin.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
