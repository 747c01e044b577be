package modeltest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/gemini"
	"belay/model/openai"
	"belay/model/rehearsal"
)

// pixel is a PNG of one pixel.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")

// encoders are all dialects at the places where they may use every field.
func encoders() map[string]model.Encoder {
	return map[string]model.Encoder{
		"anthropic":        anthropic.New(anthropic.Config{Model: "claude-sonnet-4"}),
		"openai-chat":      openai.New(openai.Config{Model: "gpt-6-luna"}),
		"openai-responses": openai.NewResponses(openai.Config{Model: "gpt-6-luna"}),
		"gemini":           gemini.New(gemini.Config{Model: "gemini-4-argon"}),
	}
}

// TestAskedKinds holds what a request may ask for against what each dialect calls it.
func TestAskedKinds(t *testing.T) {
	closed := json.RawMessage(`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"}}}`)
	open := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`)
	tools := func(strict bool, schema json.RawMessage) []model.Tool {
		return []model.Tool{{Name: "Look", Description: "looks", Schema: schema, Strict: strict}}
	}
	hi := []message.Message{message.UserText("hi")}
	for name, c := range map[string]struct {
		request model.Request
		want    map[string]string // by dialect: what the body holds; "!…" is what it does not hold
	}{
		"nothing": {model.Request{Messages: hi, Tools: tools(false, closed)}, map[string]string{
			"anthropic": `!tool_choice`, "openai-chat": `!tool_choice`, "openai-responses": `!tool_choice`, "gemini": `!toolConfig`}},
		"no call": {model.Request{Messages: hi, Tools: tools(false, closed), Choice: model.ChooseNone}, map[string]string{
			"anthropic": `"tool_choice":{"type":"none"}`, "openai-chat": `"tool_choice":"none"`, "openai-responses": `"tool_choice":"none"`, "gemini": `"functionCallingConfig":{"mode":"NONE"}`}},
		"some call": {model.Request{Messages: hi, Tools: tools(false, closed), Choice: model.ChooseSome}, map[string]string{
			"anthropic": `"tool_choice":{"type":"any"}`, "openai-chat": `"tool_choice":"required"`, "openai-responses": `"tool_choice":"required"`, "gemini": `"functionCallingConfig":{"mode":"ANY"}`}},
		"this call": {model.Request{Messages: hi, Tools: tools(false, closed), Choice: "Look"}, map[string]string{
			"anthropic": `"tool_choice":{"type":"tool","name":"Look"}`, "openai-chat": `"tool_choice":{"type":"function","function":{"name":"Look"}}`,
			"openai-responses": `"tool_choice":{"type":"function","name":"Look"}`, "gemini": `"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["Look"]}`}},
		"no tools to choose": {model.Request{Messages: hi, Choice: model.ChooseSome, OneCall: true}, map[string]string{
			"anthropic": `!tool_choice`, "openai-chat": `!tool_choice`, "openai-responses": `!parallel`, "gemini": `!toolConfig`}},
		"one call": {model.Request{Messages: hi, Tools: tools(false, closed), OneCall: true}, map[string]string{
			"anthropic": `"disable_parallel_tool_use":true`, "openai-chat": `"parallel_tool_calls":false`, "openai-responses": `"parallel_tool_calls":false`, "gemini": `!parallel`}},
		"strict": {model.Request{Messages: hi, Tools: tools(true, closed)}, map[string]string{
			"anthropic": `"strict":true`, "openai-chat": `"strict":true`, "openai-responses": `"strict":true`, "gemini": `!strict`}},
		"strict, and the schema is not": {model.Request{Messages: hi, Tools: tools(true, open)}, map[string]string{
			"anthropic": `!"strict":true`, "openai-chat": `!"strict":true`, "openai-responses": `"strict":false`, "gemini": `!strict`}},
		"an answer of a shape": {model.Request{Messages: hi, Answer: closed}, map[string]string{
			"anthropic": `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"`, "openai-chat": `"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"`,
			"openai-responses": `"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"`, "gemini": `"responseMimeType":"application/json","responseSchema":{`}},
		"a picture": {model.Request{Messages: []message.Message{{Role: message.User, Blocks: []message.Block{message.Text("what is this?"),
			{Kind: message.KindImage, Image: &message.Image{MediaType: "image/png", Data: pixel}}}}}}, map[string]string{
			"anthropic": `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBOR`, "openai-chat": `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBOR`,
			"openai-responses": `{"type":"input_image","image_url":"data:image/png;base64,iVBOR`, "gemini": `{"inlineData":{"mimeType":"image/png","data":"iVBOR`}},
		"a picture nobody takes": {model.Request{Messages: []message.Message{{Role: message.User, Blocks: []message.Block{message.Text("what is this?"),
			{Kind: message.KindImage, Image: &message.Image{MediaType: "image/tiff", Data: pixel, Name: "a.tiff"}}}}}}, map[string]string{
			"anthropic": "image not shown: a.tiff", "openai-chat": "image not shown: a.tiff", "openai-responses": "image not shown: a.tiff", "gemini": "image not shown: a.tiff"}},
		"a picture of a result": {model.Request{Messages: pictured()}, map[string]string{
			"anthropic":        `"content":[{"type":"text","text":"[a.png]"},{"type":"image","source":`,
			"openai-chat":      `{"role":"tool","content":"[a.png]","tool_call_id":"c1"},{"role":"user","content":[{"type":"image_url"`,
			"openai-responses": `"output":[{"type":"input_text","text":"[a.png]"},{"type":"input_image"`,
			"gemini":           `"response":{"output":"[a.png]"},"parts":[{"inlineData"`}},
	} {
		t.Run(name, func(t *testing.T) {
			for dialect, e := range encoders() {
				body, err := e.Encode(c.request)
				if err != nil || !json.Valid(body) {
					t.Fatalf("%s: %v", dialect, err)
				}
				want, not := c.want[dialect], false
				if want == "" {
					t.Fatalf("nothing is said of %s", dialect)
				}
				want, not = strings.CutPrefix(want, "!")
				if strings.Contains(string(body), want) == not {
					t.Errorf("%s: holds %q = %v\n%s", dialect, want, not, body)
				}
			}
		})
	}
}

func pictured() []message.Message {
	call := message.ToolCall{ID: "c1", Name: "Look", Args: json.RawMessage(`{}`)}
	result := message.ToolResult{CallID: "c1", Text: "[a.png]", Images: []message.Image{{MediaType: "image/png", Data: pixel, Name: "a.png"}}}
	return []message.Message{message.UserText("look"),
		{Role: message.Assistant, Blocks: []message.Block{{Kind: message.KindCall, Call: &call}}},
		{Role: message.User, Blocks: []message.Block{{Kind: message.KindResult, Result: &result}}}}
}

// TestPicturesAreTaken sends them to the server that judges as strictly as the real ones do.
func TestPicturesAreTaken(t *testing.T) {
	script, err := rehearsal.Parse("script.yaml", []byte("version: 1\nname: pictures\nturns:\n  - say: one\n  - say: two\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range dialects {
		request := model.Request{Messages: pictured(), Tools: []model.Tool{{Name: "Look", Description: "looks"}}, Replies: 1, OneCall: true, Choice: model.ChooseSome}
		if _, err := model.Collect(make(t, script).Stream(t.Context(), request), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
