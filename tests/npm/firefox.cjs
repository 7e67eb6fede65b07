// A day's tasks in Firefox: node firefox.cjs FIREFOX URL SPREADSHEET PDF. It prints what the list shows after each task, as JSON.
const puppeteer = require("puppeteer-core");

const [firefox, url, spreadsheet, pdf] = process.argv.slice(2);

async function main(page) {
  const shown = {}, questions = [];
  page.on("dialog", async (question) => {
    questions.push(question.message());
    await question.accept();
  });
  const leave = async (action) => Promise.all([page.waitForNavigation(), action]);
  const press = async (selector) => leave(page.locator(selector).click());
  const type = async (fields) => {
    for (const [name, text] of Object.entries(fields)) await page.locator(`input[name=${name}]`).fill(text);
    await leave(page.keyboard.press("Enter"));
  };
  const look = async (task) => {
    shown[task] = await page.$$eval("tbody tr", (rows) => rows.map((row) => [...row.cells].slice(1, 4).map((cell) => cell.textContent)));
  };

  await page.goto(url);
  await press("a::-p-text(Tambah Data)");
  await type({ nim: "20/456839/TK/50663", nama: "Siti Nur'aini, S.Kom.", alamat: " Jl. Solo 1 " });
  await look("add");
  await type({ cari: "nuraini" });
  await look("search");
  await press("tbody a::-p-text(Edit)");
  await type({ alamat: "Jl. Kaliurang 5" });
  await look("edit");
  await press("tbody button::-p-text(Delete)");
  await look("delete");
  await press("a::-p-text(Riwayat)");
  await press("button::-p-text(Kembalikan data yang dihapus)");
  await page.goto(url);
  await look("undo");
  await press("a::-p-text(Impor)");
  await (await page.$("input[type=file]")).uploadFile(spreadsheet);
  await press("main form[enctype] button[type=submit]");
  await press("button::-p-text(Simpan)");
  await look("import");
  await press("a::-p-text(Siapkan cetakan)");
  await type({ judul: "Daftar Hadir" });
  await page.pdf({ path: pdf });
  console.log(JSON.stringify({ shown, questions }));
}

(async () => {
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: firefox,
    // No page reaches another machine: every other address is asked for at a port of this one that nothing listens on.
    extraPrefsFirefox: { "network.proxy.type": 1, "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9 },
  });
  try {
    await main(await browser.newPage());
  } finally {
    await browser.close();
  }
})();
