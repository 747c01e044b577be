package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// floor is the barest loop that does the same outward work: it posts a request of the same size, runs the
// line with a plain shell, and posts what it wrote. It checks, contains and records nothing.
func floor(j job) error {
	const system = `{"role":"system","content":"%s"}` // padded, so that the whole has its size
	messages := [][]byte{nil, []byte(`{"role":"user","content":"Measure."}`)}
	for turn := 0; ; turn++ {
		size := 0
		if turn < len(j.Sizes) {
			size = j.Sizes[turn]
		}
		messages[0] = fmt.Appendf(nil, system, "s")
		body := envelope(messages)
		messages[0] = fmt.Appendf(nil, system, strings.Repeat("s", max(1, 1+size-len(body))))
		body = envelope(messages)
		message, call, line, err := post(j.URL+"/v1/chat/completions", body)
		if err != nil || call == "" {
			return err
		}
		out, err := exec.Command("bash", "--norc", "--noprofile", "-c", line).CombinedOutput()
		if err != nil {
			return err
		}
		result, err := json.Marshal(map[string]string{"role": "tool", "tool_call_id": call, "content": string(out)})
		if err != nil {
			return err
		}
		messages = append(messages, message, result)
	}
}

func envelope(messages [][]byte) []byte {
	return fmt.Appendf(nil, `{"model":"bench","messages":[%s]}`, bytes.Join(messages, []byte(",")))
}

// post sends a request and gives the reply's message and the call in it, if there is one.
func post(url string, body []byte) (message []byte, call, line string, err error) {
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, "", "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	if err != nil {
		return nil, "", "", err
	}
	var reply struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, "", "", err
	}
	message = reply.Choices[0].Message
	var said struct {
		Calls []struct {
			ID       string
			Function struct{ Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(message, &said); err != nil || len(said.Calls) == 0 {
		return message, "", "", err
	}
	var args struct{ Command string }
	err = json.Unmarshal([]byte(said.Calls[0].Function.Arguments), &args)
	return message, said.Calls[0].ID, args.Command, err
}
