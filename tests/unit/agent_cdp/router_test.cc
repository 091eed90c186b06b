// Who may say what, and who hears what: the router between recorded ends.
#include "agent/cdp/router.h"

#include <gtest/gtest.h>

#include "launcher/common/base/json.h"

namespace caisson::cdp {
namespace {

Buffer bytes(std::string_view text) {
  Buffer out;
  EXPECT_TRUE(out.append(text));
  return out;
}

struct Recorded : Wires {
  void to_browser(Outgoing message) override { browser.push_back(message.text()); }
  void to_client(ClientId client, Outgoing message) override { clients[client].push_back(message.text()); }
  void opened(ClientId client, std::string why) override { open[client] = std::move(why); }
  void end(ClientId client, std::string why) override { ended[client] = std::move(why); }
  std::vector<std::string> browser;
  std::map<ClientId, std::vector<std::string>> clients;
  std::map<ClientId, std::string> open, ended;
};

class CdpRouter : public testing::Test {
 protected:
  // What the browser was told last, or the field of it.
  json::Value last() { return json::parse(wires.browser.back()).value(); }
  std::string last_id() { return last()["id"].dump(); }
  void browser(const std::string& text) { router.from_browser(bytes(text)); }
  void client(ClientId id, const std::string& text) { router.from_client(id, bytes(text)); }
  void connect(ClientId id, const std::string& session, const std::string& target = "") {
    router.open(id, target);
    browser("{\"id\":" + last_id() + ",\"result\":{\"sessionId\":\"" + session + "\"}}");
  }
  void attach(const std::string& parent, const std::string& session) {
    browser(R"({"method":"Target.attachedToTarget","params":{"sessionId":")" + session + R"(","targetInfo":{}},"sessionId":")" +
            parent + "\"}");
  }
  void detached(const std::string& parent, const std::string& session) {
    browser(R"({"method":"Target.detachedFromTarget","params":{"sessionId":")" + session + R"("},"sessionId":")" + parent +
            "\"}");
  }
  const std::vector<std::string>& heard(ClientId id) { return wires.clients[id]; }

  Recorded wires;
  Router router{wires};
};

TEST_F(CdpRouter, EachClientHasASessionOfItsOwn) {
  router.open(1, "");
  EXPECT_EQ(last()["method"], "Target.attachToBrowserTarget");
  browser("{\"id\":" + last_id() + R"(,"result":{"sessionId":"S1"}})");
  EXPECT_EQ(wires.open.at(1), "");
  client(1, R"({"id":1,"method":"Browser.getVersion"})");
  EXPECT_EQ(last()["sessionId"], "S1");
}

TEST_F(CdpRouter, APageClientIsAttachedToItsPage) {
  router.open(1, "T1");
  EXPECT_EQ(last()["params"], (json::Value{{"targetId", "T1"}, {"flatten", true}}));
  browser("{\"id\":" + last_id() + R"(,"error":{"code":-32602,"message":"No target with given id found"}})");
  EXPECT_EQ(wires.open.at(1), "No target with given id found");
  EXPECT_EQ(router.clients(), 0u);
}

TEST_F(CdpRouter, IdsOfAnySizeComeBackAsTheyWere) {
  connect(1, "S1");
  for (const char* id : {"0", "-1", "9007199254740992", "-9999", "12345678901234567890"}) {
    client(1, std::string("{\"method\":\"A.b\",\"id\":") + id + "}");
    const std::string sent = last_id();
    EXPECT_GT(last()["id"].get<int>(), 0);
    browser("{\"id\":" + sent + R"(,"result":{"id":5},"sessionId":"S1"})");
    EXPECT_EQ(heard(1).back(), std::string("{\"id\":") + id + R"(,"result":{"id":5}})");
  }
  EXPECT_EQ(router.unanswered(), 0u);
}

TEST_F(CdpRouter, DownloadsLandInTheHomeWhateverFolderIsNamed) {
  router.downloads = "/home/gem/Downloads";
  connect(1, "S1");
  struct Row {
    const char *params, *sent;
  };
  const Row rows[] = {
      {R"({"behavior":"allowAndName","downloadPath":"/tmp/x","eventsEnabled":true,"browserContextId":"C"})",
       R"({"behavior":"default","browserContextId":"C","eventsEnabled":true})"},
      {R"({"behavior":"allow","downloadPath":"/home/gem/Downloads2"})", R"({"behavior":"default"})"},
      {R"({"behavior":"allow"})", R"({"behavior":"default"})"},
      {R"({"behavior":"allow","downloadPath":"/home/gem/Downloads/a"})",
       R"({"behavior":"allow","downloadPath":"/home/gem/Downloads/a"})"},
      {R"({"behavior":"deny"})", R"({"behavior":"deny"})"},
  };
  for (const char* method : {"Browser.setDownloadBehavior", "Page.setDownloadBehavior"})
    for (const Row& row : rows) {
      client(1, std::string(R"({"id":7,"params":)") + row.params + R"(,"method":")" + method + R"("})");
      EXPECT_EQ(last()["params"], json::parse(row.sent).value()) << row.params;
      EXPECT_EQ(last()["method"], method);
      EXPECT_EQ(last()["sessionId"], "S1");
    }
  EXPECT_EQ(router.unanswered(), 10u);
}

TEST_F(CdpRouter, WhatIsNoIdIsAnsweredAsChromiumDoes) {
  connect(1, "S1");
  const std::size_t before = wires.browser.size();
  for (const char* text : {R"({"id":"x","method":"A.b"})", R"({"method":"A.b"})", R"({"id":1.5,"method":"A.b"})"}) {
    client(1, text);
    EXPECT_EQ(heard(1).back(), R"({"error":{"code":-32600,"message":"Message must have integer 'id' property"}})") << text;
  }
  client(1, R"({"id":3,"method":5})");
  EXPECT_EQ(heard(1).back(), R"({"id":3,"error":{"code":-32600,"message":"Message must have string 'method' property"}})");
  client(1, R"({"id":3,"method":"a","sessionId":5})");
  EXPECT_EQ(heard(1).back(), R"({"id":3,"error":{"code":-32600,"message":"Message may have string 'sessionId' property"}})");
  EXPECT_EQ(wires.browser.size(), before);
  EXPECT_TRUE(wires.ended.empty());
}

TEST_F(CdpRouter, AnAmbiguousMessageEndsItsClientAlone) {
  ClientId id = 1;
  connect(100, "S100");
  for (const char* text : {R"({"id":1,"id":2,"method":"a"})", R"({"id":1,"m\u0065thod":"a"})", "[]", "", "{\"id\":1",
                           R"({"id":1,"method":"Browser.\u0063lose"})"}) {
    ++id;
    connect(id, "S" + std::to_string(id));
    client(id, text);
    EXPECT_TRUE(wires.ended.contains(id)) << text;
    EXPECT_EQ(last()["method"], "Target.detachFromTarget");
  }
  EXPECT_EQ(router.clients(), 1u);
  EXPECT_EQ(router.sessions(), 1u);
}

TEST_F(CdpRouter, AnothersSessionDoesNotExist) {
  connect(1, "S1");
  connect(2, "S2");
  attach("S2", "P2");
  const std::size_t before = wires.browser.size();
  for (const char* session : {"P2", "S2", "S1", "nobody", ""}) {
    client(1, std::string(R"({"id":9,"method":"Page.navigate","sessionId":")") + session + "\"}");
    EXPECT_EQ(heard(1).back(), R"({"id":9,"error":{"code":-32001,"message":"Session with given id not found."}})") << session;
  }
  EXPECT_EQ(wires.browser.size(), before);
  client(2, R"({"id":9,"method":"Page.navigate","sessionId":"P2"})");
  EXPECT_EQ(last()["sessionId"], "P2");
  EXPECT_TRUE(heard(2).size() == 1) << "the event that named it";
}

TEST_F(CdpRouter, EventsReachTheOwnerAlone) {
  connect(1, "S1");
  connect(2, "S2");
  attach("S1", "P1");
  browser(R"({"method":"Page.loaded","params":{},"sessionId":"P1"})");
  EXPECT_EQ(heard(1).back(), R"({"method":"Page.loaded","params":{},"sessionId":"P1"})");
  browser(R"({"method":"Target.targetCreated","params":{},"sessionId":"S2"})");
  EXPECT_EQ(heard(2).back(), R"({"method":"Target.targetCreated","params":{}})") << "its own session has no name";
  browser(R"({"method":"X.y","params":{}})");
  browser(R"({"method":"X.y","params":{},"sessionId":"gone"})");
  EXPECT_EQ(heard(1).size(), 2u);
  EXPECT_EQ(heard(2).size(), 1u);
}

TEST_F(CdpRouter, ARendererCannotGiveOrEndWhatIsNotItsOwn) {
  connect(1, "S1");
  connect(2, "S2");
  attach("S1", "P1");
  attach("S2", "P2");
  attach("P1", "P2");    // a claim
  detached("P1", "P2");  // an end
  detached("P1", "S2");
  EXPECT_EQ(router.sessions(), 4u);
  EXPECT_EQ(router.dropped(), 3u);
  client(2, R"({"id":1,"method":"Page.x","sessionId":"P2"})");
  const std::string number = last_id();
  browser("{\"id\":" + number + R"(,"result":{"forged":1},"sessionId":"P1"})");
  EXPECT_EQ(heard(1).size(), 1u);
  browser("{\"id\":" + number + R"(,"result":{},"sessionId":"P2"})");
  EXPECT_EQ(heard(2).back(), R"({"id":1,"result":{},"sessionId":"P2"})");
  browser(R"({"method":"X","sessionId":"P1","sessionId":"P2"})");
  EXPECT_EQ(heard(2).size(), 2u);
}

TEST_F(CdpRouter, WhatASessionWasAskedIsAnsweredAtItsEnd) {
  connect(1, "S1");
  attach("S1", "P1");
  attach("P1", "W1");
  client(1, R"({"id":5,"method":"Runtime.evaluate","sessionId":"P1"})");
  client(1, R"({"id":6,"method":"Runtime.evaluate","sessionId":"W1"})");
  detached("S1", "P1");
  EXPECT_EQ(router.sessions(), 1u);
  EXPECT_EQ(router.unanswered(), 0u);
  ASSERT_EQ(heard(1).size(), 5u);
  EXPECT_EQ(heard(1)[2], R"({"id":5,"error":{"code":-32001,"message":"Session with given id not found."}})");
  EXPECT_EQ(json::parse(heard(1)[4]).value()["method"], "Target.detachedFromTarget");
  client(1, R"({"id":7,"method":"Runtime.evaluate","sessionId":"W1"})");
  EXPECT_EQ(json::parse(heard(1).back()).value()["error"]["code"], -32001);
}

TEST_F(CdpRouter, AtAClientsEndNothingOfItIsLeft) {
  connect(1, "S1");
  connect(2, "S2");
  attach("S1", "P1");
  attach("P1", "W1");
  client(1, R"({"id":5,"method":"Runtime.evaluate","sessionId":"P1"})");
  const std::string number = last_id();
  router.gone(1);
  EXPECT_EQ(last()["method"], "Target.detachFromTarget");
  EXPECT_EQ(last()["params"]["sessionId"], "S1");
  EXPECT_FALSE(last().contains("sessionId"));
  browser("{\"id\":" + last_id() + R"(,"result":{}})");
  browser("{\"id\":" + number + R"(,"result":{},"sessionId":"P1"})");
  browser(R"({"method":"Page.x","sessionId":"W1"})");
  EXPECT_EQ(router.sessions(), 1u);
  EXPECT_EQ(router.unanswered(), 0u);
  EXPECT_EQ(heard(2).size(), 0u);
}

TEST_F(CdpRouter, AClientThatEndsBeforeItsSessionCameLeavesNone) {
  router.open(1, "");
  const std::string number = last_id();
  router.gone(1);
  browser("{\"id\":" + number + R"(,"result":{"sessionId":"S1"}})");
  EXPECT_EQ(last()["method"], "Target.detachFromTarget");
  EXPECT_EQ(last()["params"]["sessionId"], "S1");
  EXPECT_EQ(router.sessions(), 0u);
}

TEST_F(CdpRouter, ClosingTheBrowserIsAnsweredAndLeavesIt) {
  for (const char* method : {"Browser.close", "Browser.crash", "Browser.crashGpuProcess"}) {
    connect(1, "S1");
    connect(2, "S2");
    client(1, std::string(R"({"id":-9999,"method":")") + method + "\"}");
    EXPECT_EQ(heard(1).back(), R"({"id":-9999,"result":{}})");
    EXPECT_TRUE(wires.ended.contains(1));
    EXPECT_FALSE(wires.ended.contains(2));
    for (const std::string& sent : wires.browser) EXPECT_FALSE(sent.contains("Browser.c"));
    router.gone(2);
    wires.ended.clear();
  }
}

TEST_F(CdpRouter, WhatReachesBeyondASessionIsRefused) {
  connect(1, "S1");
  attach("S1", "P1");
  const std::size_t before = wires.browser.size();
  for (const char* method : {"Target.exposeDevToolsProtocol", "Target.sendMessageToTarget", "Extensions.loadUnpacked",
                             "Tethering.bind", "Target.setRemoteLocations"}) {
    client(1, std::string(R"({"id":4,"method":")") + method + R"(","sessionId":"P1"})");
    const json::Value answer = json::parse(heard(1).back()).value();
    EXPECT_EQ(answer["error"]["code"], -32000) << method;
    EXPECT_EQ(answer["sessionId"], "P1");
  }
  EXPECT_EQ(wires.browser.size(), before);
}

TEST_F(CdpRouter, ATargetThatIsGoneEndsItsPageClient) {
  connect(1, "S1", "T1");
  client(1, R"({"id":1,"method":"Page.close"})");
  browser(R"({"method":"Target.detachedFromTarget","params":{"sessionId":"S1","targetId":"T1"}})");
  EXPECT_EQ(wires.ended.at(1), "its target is gone");
  EXPECT_EQ(router.clients() + router.sessions() + router.unanswered(), 0u);
}

TEST_F(CdpRouter, ATooLargeAnswerIsAnError) {
  connect(1, "S1");
  attach("S1", "P1");
  client(1, R"({"id":8,"method":"Runtime.evaluate","sessionId":"P1"})");
  const std::string head = "{\"id\":" + last_id() + ",\"result\":{\"x\":\"";
  router.lost_from_browser(head, R"(xxxx"},"sessionId":"forged"})");
  EXPECT_EQ(router.unanswered(), 1u);
  router.lost_from_browser(head, R"(xxxx"},"sessionId":"P1"})");
  const json::Value answer = json::parse(heard(1).back()).value();
  EXPECT_EQ(answer["id"], 8);
  EXPECT_EQ(answer["sessionId"], "P1");
  EXPECT_EQ(router.unanswered(), 0u);
}

TEST_F(CdpRouter, UnansweredCommandsAreBounded) {
  connect(1, "S1");
  for (std::size_t i = 0; i < Router::kMaxUnanswered; ++i) client(1, R"({"id":1,"method":"A.b"})");
  EXPECT_FALSE(wires.ended.contains(1));
  client(1, R"({"id":1,"method":"A.b"})");
  EXPECT_TRUE(wires.ended.contains(1));
  EXPECT_EQ(router.unanswered(), 1u) << "the detaching of its session";
}

TEST_F(CdpRouter, APageThatWaitsForAHeldClientIsLetGo) {
  const auto attach_waiting = [&](const std::string& session) {
    browser(R"({"method":"Target.attachedToTarget","params":{"sessionId":")" + session +
            R"(","targetInfo":{},"waitingForDebugger":true},"sessionId":"S1"})");
  };
  connect(1, "S1");
  attach_waiting("P1");
  attach_waiting("P2");
  client(1, R"({"id":1,"method":"Runtime.runIfWaitingForDebugger","sessionId":"P1"})");
  const std::size_t before = wires.browser.size();
  router.hold(true);
  ASSERT_EQ(wires.browser.size(), before + 1) << "P1 was let go by its client";
  EXPECT_EQ(last()["method"], "Runtime.runIfWaitingForDebugger");
  EXPECT_EQ(last()["sessionId"], "P2");
  browser("{\"id\":" + last_id() + R"(,"result":{},"sessionId":"P2"})");
  attach_waiting("P3");
  EXPECT_EQ(last()["sessionId"], "P3");
  EXPECT_EQ(heard(1).size(), 3u) << "the events that named them";
  detached("S1", "P3");
  router.hold(false);
  attach_waiting("P4");
  EXPECT_EQ(wires.browser.size(), before + 2);
  router.gone(1);
  EXPECT_EQ(router.unanswered(), 1u) << "the detaching";
}

TEST_F(CdpRouter, TheBrowsersEndIsEveryClients) {
  connect(1, "S1");
  connect(2, "S2");
  attach("S1", "P1");
  client(1, R"({"id":1,"method":"A.b"})");
  router.browser_ended("gone");
  EXPECT_EQ(wires.ended.size(), 2u);
  EXPECT_EQ(router.clients() + router.sessions() + router.unanswered(), 0u);
}

}  // namespace
}  // namespace caisson::cdp
