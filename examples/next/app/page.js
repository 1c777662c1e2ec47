import { Orders } from "./orders.js";

export default function Page() {
  return (
    <main>
      <h1>Orders</h1>
      <Orders />
    </main>
  );
}
