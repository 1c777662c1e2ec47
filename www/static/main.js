// The page where it comes from files alone: the service it calls is a service worker of its own, which has to be there first.

if (!navigator.serviceWorker) {
  document.querySelector("#notice").textContent = "This page needs a service worker, which browsers allow only on https or localhost.";
  document.querySelector("#notice").hidden = false;
} else {
  await navigator.serviceWorker.register("./service-worker.js", { type: "module" });
  if (!navigator.serviceWorker.controller) await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  await import("../main.js");
}
